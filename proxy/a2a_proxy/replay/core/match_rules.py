"""Which parts of a request are compared, as the options select them; the user's own matchers."""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import IDENTIFIERS, DifferenceRow, Path, ValueChange
from a2a_proxy.recording.difference.paths import PathError, parse_path, without_paths

MATCHER_STEP = "match_on"
"""First step of the path of a difference that a matcher reports."""
_NORMALIZED = "*"
"""What replaces a text that `normalize` matches."""


class MatchRuleError(ValueError):
    """A name, path or expression that is not valid; the text says which."""


class MatchName(StrEnum):
    """A part of a request that can be compared. The operation always is."""

    TENANT = "tenant"
    TASK = "task"
    """`taskId`, the `id` of a request about a task, `referenceTaskIds`."""
    CONTEXT = "context"
    PARTS = "parts"
    """All parts of the message."""
    TEXT = "text"
    """Parts with text."""
    DATA = "data"
    """Parts with data."""
    FILES = "files"
    """All other parts."""
    CONFIGURATION = "configuration"
    PARAMETERS = "parameters"
    """The other members of a request."""
    METADATA = "metadata"
    """Of the request and of the message."""
    EXTENSIONS = "extensions"
    MESSAGE_ID = "message_id"
    HEADERS = "headers"


class MatchedRequest(msgspec.Struct, frozen=True):
    """A request as a matcher receives it; in a drive, an answer."""

    operation: str
    """Its 1.0 name: `SendMessage`."""
    tenant: str
    value: Any
    """The request in the 1.0 JSON form, whatever the binding and the version; the answer, or the
    list of its events."""
    headers: dict[str, str]
    """Headers by name in lower case; recorded ones without credentials."""


Matcher = Callable[[MatchedRequest, MatchedRequest], object]
"""Compares a recorded request or answer with a live one. They do not match if it returns False or
raises an AssertionError; any other result, None included, is a match."""


def parse_match_name(word: str) -> MatchName:
    """Return the part of a request that a word names. Raises MatchRuleError."""
    try:
        return MatchName(word.replace("-", "_"))
    except ValueError:
        raise MatchRuleError(
            f"{word!r} is not one of {', '.join(MatchName)}, or a function MODULE:NAME"
        ) from None


def parse_ignored(words: Iterable[str]) -> tuple[Path, ...]:
    """Return the paths that do not count. Raises MatchRuleError."""
    try:
        return tuple(map(parse_path, words))
    except PathError as wrong:
        raise MatchRuleError(f"{str(wrong)!r} is not a path in a message") from None


def check_expressions(words: Iterable[str]) -> tuple[str, ...]:
    """Return the regular expressions. Raises MatchRuleError."""
    checked = tuple(words)
    for word in checked:
        try:
            re.compile(word)
        except re.error as wrong:
            raise MatchRuleError(f"{word!r} is not a regular expression: {wrong}") from None
    return checked


DEFAULT_NAMES = frozenset(MatchName) - {
    *(MatchName.METADATA, MatchName.EXTENSIONS, MatchName.MESSAGE_ID, MatchName.HEADERS),
}
MEMBER_NAMES = {
    "tenant": MatchName.TENANT,
    "taskId": MatchName.TASK,
    "id": MatchName.TASK,
    "referenceTaskIds": MatchName.TASK,
    "contextId": MatchName.CONTEXT,
    "parts": MatchName.PARTS,
    "configuration": MatchName.CONFIGURATION,
    "metadata": MatchName.METADATA,
    "extensions": MatchName.EXTENSIONS,
    "messageId": MatchName.MESSAGE_ID,
}
"""By member of a request or of its message."""
_PART_NAMES = {"text": MatchName.TEXT, "data": MatchName.DATA}


class MatchRules:
    """The parts that count: names, ignored paths, normalized texts, matchers."""

    def __init__(
        self,
        names: frozenset[MatchName],
        matchers: tuple[Matcher, ...] = (),
        ignore: tuple[Path, ...] = (),
        normalize: tuple[str, ...] = (),
    ) -> None:
        self._names = names
        self.matchers = matchers
        self._ignore = tuple(map(_of_request, ignore))
        self._normalize = tuple(map(re.compile, normalize))

    @property
    def compares_headers(self) -> bool:
        """Whether headers count."""
        return MatchName.HEADERS in self._names

    @property
    def compares_tasks(self) -> bool:
        """Whether the task of a request counts."""
        return MatchName.TASK in self._names

    @property
    def compares_nothing(self) -> bool:
        """Whether only the operation counts."""
        return not self._names and not self.matchers

    def select_parts(self, value: Any, tenant: str = "") -> Any:
        """Return the parts of a request that count, normalized."""
        if isinstance(value, dict):
            value = {"tenant": tenant, **value} if tenant else value
            value = {name: item for name, item in value.items() if self._has_member(name)}
            if isinstance(message := value.get("message"), dict):
                value["message"] = self._select_message(message)
        return self.normalize_texts(without_paths(value, self._ignore))

    def normalize_texts(self, value: Any) -> Any:
        """Return a message with normalized texts."""
        return self._normalize_value(value, "") if self._normalize else value

    def select_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers that count, normalized."""
        kept: dict[str, Any] = without_paths({"headers": headers}, self._ignore).get("headers", {})
        return {name: self._normalize_text(value) for name, value in kept.items()}

    def run_matchers(
        self, recorded: MatchedRequest, now: MatchedRequest
    ) -> tuple[DifferenceRow, ...]:
        """Return a difference for each matcher by which the requests do not match."""
        rows = []
        for matcher in self.matchers:
            name = getattr(matcher, "__name__", type(matcher).__name__)
            try:
                reason = "it returned False" if matcher(recorded, now) is False else ""
            except Exception as wrong:  # a matcher is code of the user
                reason = (
                    str(wrong)
                    if isinstance(wrong, AssertionError)
                    else f"{type(wrong).__name__}: {wrong}"
                )
                reason = reason or "AssertionError"
            if reason:
                path = (MATCHER_STEP, name)
                rows.append(DifferenceRow(ValueChange.CHANGED, path, path, None, reason))
        return tuple(rows)

    def _has_member(self, name: str) -> bool:
        return name == "message" or MEMBER_NAMES.get(name, MatchName.PARAMETERS) in self._names

    def _select_message(self, message: dict[str, Any]) -> dict[str, Any]:
        selected = {
            name: item
            for name, item in message.items()
            if MEMBER_NAMES.get(name) in (None, *self._names)
        }
        kinds = self._names & {MatchName.TEXT, MatchName.DATA, MatchName.FILES}
        if (
            MatchName.PARTS not in self._names
            and kinds
            and isinstance(parts := message.get("parts"), list)
        ):
            selected["parts"] = [part for part in parts if part_name(part) in kinds]
        return selected

    def _normalize_value(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self._normalize_value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._normalize_value(item, name) for item in value]
        return (
            self._normalize_text(value)
            if isinstance(value, str) and name not in IDENTIFIERS
            else value
        )

    def _normalize_text(self, text: str) -> str:
        for pattern in self._normalize:
            text = pattern.sub(_NORMALIZED, text)
        return text


def _of_request(path: Path) -> Path:
    """Return a path of a request: `request.message` is `$.message`, as in a comparison of calls."""
    return ("$", *path[1:]) if path[0] == "request" else path


def part_name(part: Any) -> MatchName:
    """Return the kind of a part of a message or artifact."""
    names = (
        name for member, name in _PART_NAMES.items() if isinstance(part, dict) and member in part
    )
    return next(names, MatchName.FILES)
