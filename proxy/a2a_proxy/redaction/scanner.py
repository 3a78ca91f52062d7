"""Search for secrets without redacting them: the values that a redactor would replace, their
places, and the clues."""

import re
from collections.abc import Iterable
from enum import Enum
from functools import partial
from typing import Any, Final

import msgspec

from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.redaction.entropy import random_words
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.policy import RedactionPolicy
from a2a_proxy.redaction.policy_scrubber import PROTOCOL_HEADERS, PolicyScrubber
from a2a_proxy.redaction.redactor import Redactor
from a2a_proxy.redaction.scrubber import plain_name
from a2a_proxy.redaction.secret_names import fold_name
from a2a_proxy.redaction.secret_patterns import Edit
from a2a_proxy.redaction.split_secrets import SplitSecrets

_KEY: Final = b"key of labels that are not shown"
_UNNAMED: Final = re.compile(
    r".*(?:id|ids|signature|protected|digest|hash|checksum|etag|cursor|pagetoken|bytes|raw|"
    r"filewithbytes|rawb64|"
    r"sha256|extensions|traceparent|tracestate|websocketkey|websocketaccept|nonce)"
)
"""Folded names whose random words are identifiers, media and signatures, not secrets."""


class Clue(Enum):
    """The clue that identified a secret."""

    NAME = "name"
    """Its name, or a policy, marks its place as secret."""
    LOOK = "look"
    """It has the form of a credential, or the words around it indicate one."""
    RANDOM = "random"
    """It looks random, and nothing shows its purpose."""
    REPEATED = "repeated"
    """It is a secret elsewhere."""


class Sight(msgspec.Struct, frozen=True):
    """A secret in a value."""

    where: str
    """Its place: `$.params.token`, `header:authorization`, `error`."""
    secret: bytes
    clue: Clue


class ScanningRedactor(Redactor):
    """A redactor that reports the values that a policy would redact, and random words."""

    def __init__(self, policy: RedactionPolicy, *, random: bool = True) -> None:
        super().__init__(_KEY, policy)
        self._heard = self._scrub = _Listener(_KEY, policy, random=random)
        self._suspicious = partial(self._scrub.may_hold_secret, is_payload=True)
        self._split = SplitSecrets(self._scrub)

    def in_frame(self, frame: Frame, exchange: Exchange | None) -> list[Sight]:
        """Return the secrets of a frame."""
        self._begin_scan()
        clean = self.redact_frame(frame, exchange)
        if clean is frame:
            return []
        found = self._heard.find_sights(
            [path for path in clean.redacted if path not in frame.redacted], clean.payload
        )
        return found + self._compare_columns(frame, clean, ("payload", "redacted", "sha256"))

    def in_exchange(self, exchange: Exchange) -> list[Sight]:
        """Return the secrets in the heads and texts of an exchange."""
        self._begin_scan()
        clean = self.redact_exchange(exchange)
        if clean is exchange:
            return []
        found = self._compare_columns(
            exchange, clean, ("redacted", "request_headers", "response_headers", "trailers")
        )
        sides = (
            ("request_headers", "header"),
            ("response_headers", "response-header"),
            ("trailers", "trailer"),
        )
        for side, word in sides:
            for (name, _), (_, new) in zip(
                getattr(exchange, side), getattr(clean, side), strict=True
            ):
                where = f"{word}:{name.decode('latin-1').lower()}"
                found += self._heard.find_sights_within(where, new)
        return found

    def in_value(self, value: msgspec.Struct) -> list[Sight]:
        """Return the secrets of a connection, a task or a finding."""
        self._begin_scan()
        redact: Any = getattr(self, f"redact_{type(value).__name__.lower()}")
        return self._compare_columns(value, redact(value), ())

    def in_texts(self, where: str, texts: Iterable[str]) -> list[Sight]:
        """Return the secrets in related texts, such as the words of a command line, which may
        follow their flags."""
        self._begin_scan()
        clean = (
            text.encode("utf-8", "surrogatepass") for text in self.redact_command(tuple(texts))
        )  # names of files
        return [sight for text in clean for sight in self._heard.find_sights_within(where, text)]

    def in_json(self, value: Any) -> list[Sight]:
        """Return the secrets of any JSON value, such as a line of a cassette."""
        self._begin_scan()
        data = msgspec.json.encode(value)
        frame = Frame(0, 0, 0, 0, 0, 0, 0, 0, 0, data, len(data), schema="json")  # type: ignore[arg-type]
        clean = self._redact_whole_frame(frame)
        return self._heard.find_sights(list(clean.redacted), clean.payload)

    def _begin_scan(self) -> None:
        self._clear_caches()
        self._taught.clear()
        self._heard.forget_secrets()

    def _compare_columns(
        self, old: msgspec.Struct, new: msgspec.Struct, apart: tuple[str, ...]
    ) -> list[Sight]:
        """Return the secrets replaced in all fields except those in `apart`."""
        found: list[Sight] = []
        for name in old.__struct_fields__:
            if name not in apart and (now := getattr(new, name)) != getattr(old, name):
                found += self._heard.find_sights_within(name, repr(now).encode())
        return found


class _Listener(PolicyScrubber):
    """Scrubber that remembers each secret it labels."""

    def __init__(self, key: bytes, policy: RedactionPolicy, *, random: bool) -> None:
        super().__init__(key, policy)
        self._random = random
        self._clues: dict[bytes, Clue] = {}
        self._asked: list[bytes] = []
        self._groups: list[list[bytes]] = []
        """The secrets of each replaced string."""
        self._deep = 0
        self._named = False
        """Whether random words in the current value are not secrets, because of its name."""

    def forget_secrets(self) -> None:
        """Forget the secrets of the previous value."""
        self._asked, self._groups = [], []

    def find_sights(self, paths: list[str], clean: bytes) -> list[Sight]:
        """Return the secrets of a payload, each with the path of its string; `clean` is the
        redacted payload."""
        if len(paths) == len(self._groups):
            pairs = [
                (path, secret)
                for path, group in zip(paths, self._groups, strict=True)
                for secret in group
            ]
        else:  # some strings were redacted twice, or kept
            pairs = [
                (paths[0] if len(paths) == 1 else "$", secret)
                for secret in dict.fromkeys(self._asked)
            ]
        told = [
            pair
            for pair in dict.fromkeys(pairs)
            if self._label_of(pair[1]) in clean or b"-bin" in clean
        ]
        return [self._make_sight(*pair) for pair in told]

    def find_sights_within(self, where: str, clean: bytes) -> list[Sight]:
        """Return the secrets whose labels are in the redacted value `clean`."""
        return [
            self._make_sight(where, each)
            for each in dict.fromkeys(self._asked)
            if self._label_of(each) in clean
        ]

    def _make_sight(self, where: str, secret: bytes) -> Sight:
        return Sight(where, secret, self._clues.get(secret, Clue.REPEATED))

    def _label_of(self, secret: bytes) -> bytes:
        return super().make_label(secret)

    def make_label(self, secret: bytes) -> bytes:
        """Return the label of a secret, and remember the secret."""
        self._asked.append(secret)
        return super().make_label(secret)

    def redact_named_value(self, folded: str, value: bytes) -> bytes | None:
        """Redact like `Scrubber.redact_named_value`; the clue is the name."""
        before = len(self._asked)
        new = super().redact_named_value(folded, value)
        for secret in self._asked[before:]:
            self._clues[secret] = Clue.NAME
        return new

    def hide_value(self, value: bytes) -> bytes:
        """Redact like `PolicyScrubber.hide_value`; the clue is the name."""
        self._clues[value] = Clue.NAME
        self._groups.append([value])
        return super().hide_value(value)

    def redact_header(self, name: bytes, value: bytes) -> bytes:
        """Redact like `PolicyScrubber.redact_header`; the name decides whether random words
        count."""
        plain = plain_name(name)
        self._named = (
            PROTOCOL_HEADERS.fullmatch(plain) is not None or _UNNAMED.fullmatch(plain) is not None
        )
        try:
            return super().redact_header(name, value)
        finally:
            self._named = False

    def redact_string(
        self, value: bytes, name: str | None, cut: bool, depth: int = 0
    ) -> bytes | None:
        """Redact like `PolicyScrubber.redact_string`, and note the secrets of the string."""
        before, outside = len(self._asked), self._named
        self._deep += 1
        self._named = outside or (
            name is not None and _UNNAMED.fullmatch(fold_name(name)) is not None
        )
        try:
            new = super().redact_string(value, name, cut, depth)
        finally:
            self._named = outside
            self._deep -= 1
        if new is not None and not self._deep:
            self._groups.append(self._asked[before:])
        return new

    def apply_edits(self, data: bytes, edits: list[Edit]) -> bytes:
        """Redact like `Scrubber.apply_edits`, and note the secrets of the text."""
        before = len(self._asked)
        new = super().apply_edits(data, edits)
        if new != data and not self._deep:
            self._groups.append(self._asked[before:])
        return new

    def find_edits(self, data: bytes, *, cut: bool) -> list[Edit]:
        """Return the edits of `PolicyScrubber.find_edits` and the random words."""
        found = super().find_edits(data, cut=cut)
        for edit in found:
            self._clues.setdefault(edit.secret, Clue.LOOK)
        if self._random and not self._named:
            for start, end in random_words(data):
                word = data[start:end]
                if not (
                    is_label(word)
                    or self.keeps_value(word)
                    or any(each.start < end and start < each.end for each in found)
                ):
                    self._clues.setdefault(word, Clue.RANDOM)
                    found.append(Edit(start, end, word, False))
        return found
