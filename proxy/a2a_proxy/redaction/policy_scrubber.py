"""The scrubber of a policy: a `Scrubber` that also redacts, and keeps, the values that the policy
names."""

import re
from collections.abc import Iterable
from typing import Final

from a2a_proxy.redaction import personal_data
from a2a_proxy.redaction.entropy import random_words
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.payload_paths import compile_paths, make_wildcard_expression
from a2a_proxy.redaction.policy import RedactionPolicy
from a2a_proxy.redaction.scrubber import Scrubber, plain_name
from a2a_proxy.redaction.secret_names import fold_name
from a2a_proxy.redaction.secret_patterns import Edit

_EXACT: Final = 4096
"""Hidden values that are recognized as the whole text of a column, such as an id that is also in
the payload."""
_ID: Final = 128
"""Bytes of such a value, at most."""

PROTOCOL_HEADERS: Final = re.compile(
    r"accept(encoding|language|charset|ranges)?|age|alt?svc|allow|cachecontrol|connection|"
    r"content(encoding|language|"
    r"length|type)|date|etag|expect|expires|grpc(status|timeout|encoding|acceptencoding)|host|"
    r"keepalive|lasteventid|"
    r"method|path|scheme|authority|status|prefersafe|server|te|trailers?|transferencoding|upgrade|"
    r"useragent|vary|"
    r"wwwauthenticate|a2aversion|a2aextensions|xa2aextensions|traceparent|tracestate|:.*"
)
"""Folded names of fields that reveal nothing about the client: the preset `strict` keeps these."""
_MESSAGES: Final = frozenset({"grpcmessage", "grpcstatusdetails"})
"""Folded names of fields that describe an error, as payloads do in other bindings."""
_DIGIT: Final = re.compile(rb"\d")


class PolicyScrubber(Scrubber):
    """Replaces secrets, and values that a policy names, by labels."""

    shortest = 1

    def __init__(self, key: bytes, policy: RedactionPolicy) -> None:
        super().__init__(key)
        take, keep = policy.take, policy.keep
        members = (*take.members, *(personal_data.MEMBERS if policy.pii else ()))
        self.names |= {fold_name(name) for name in members if "*" not in name}
        self.hidden = compile_paths(take.paths, members)
        self.spared = compile_paths(keep.paths, keep.members)
        self._taken_headers = _compile_names(
            (*take.headers, *(personal_data.HEADERS if policy.pii else ()))
        )
        self._kept_headers, self._kept_members = (
            _compile_names(keep.headers),
            _compile_names(keep.members),
        )
        self._patterns = [re.compile(each.encode()) for each in take.patterns]
        self._kept = [re.compile(each.encode()) for each in keep.patterns]
        self._strict, self._pii = policy.strict, policy.pii
        self._exact: dict[bytes, None] = {}

    def may_hold_secret(self, data: bytes, *, is_payload: bool = False) -> bool:  # noqa: ARG002
        """Whether there is any data, because the policy may name anything."""
        return bool(data)

    def hide_value(self, value: bytes) -> bytes:
        """Return the label of a value at a path, and remember the value if it may be an id."""
        if len(value) <= _ID and value not in self._exact:
            self._exact[value] = None
            if len(self._exact) > _EXACT:
                del self._exact[next(iter(self._exact))]
            self.seen.change_count += 1
            if _DIGIT.search(value) and not value.split(None, 1)[1:]:
                self.learn_secret(
                    value
                )  # an identifier, not a word of the protocol, which must stay elsewhere
        return self.make_label(value)

    def keeps_value(self, secret: bytes) -> bool:
        """Whether the policy keeps this value."""
        return any(pattern.fullmatch(secret) for pattern in self._kept)

    def names_secret(self, name: str) -> bool:
        """Whether a member or header of that name is redacted."""
        if _matches_name(self._kept_members, fold_name(name)) or _matches_name(
            self._kept_headers, fold_name(name)
        ):
            return False
        return super().names_secret(name) or _matches_name(self._taken_headers, fold_name(name))

    def holds_secret(self, name: bytes) -> bool:
        """Whether a header field of that name holds a secret or is redacted by the policy."""
        plain = plain_name(name)
        if _matches_name(self._kept_headers, plain):
            return False
        taken = super().holds_secret(name) or _matches_name(self._taken_headers, plain)
        return taken or (
            self._strict and PROTOCOL_HEADERS.fullmatch(plain) is None and plain not in _MESSAGES
        )

    def redact_header(self, name: bytes, value: bytes) -> bytes:
        """Return a header or metadata value without secrets."""
        plain = plain_name(name)
        if _matches_name(self._kept_headers, plain):
            return value
        if super().holds_secret(name) or not self.holds_secret(name):
            return super().redact_header(name, value)
        if not value or is_label(value) or self.keeps_value(value):
            return value
        if _matches_name(self._taken_headers, plain):
            self.learn_secret(value)
        return self.make_label(value)

    def redact_string(
        self, value: bytes, name: str | None, cut: bool, depth: int = 0
    ) -> bytes | None:
        """Return the replacement of a decoded string with that name, or None if it stays."""
        if name is not None and _matches_name(self._kept_members, fold_name(name)):
            return None
        return super().redact_string(value, name, cut, depth)

    def redact_column(self, data: bytes) -> bytes | None:
        """Return the label of the text of a column whose value was hidden in the payload; None if
        it stays."""
        bare = data.strip(b'"')
        return data.replace(bare, self.make_label(bare)) if bare and bare in self._exact else None

    def find_edits(self, data: bytes, *, cut: bool) -> list[Edit]:
        """Return the edits for the secrets in a text and for the parts that the policy names."""
        found = super().find_edits(data, cut=cut)
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            found += [
                _make_edit(data, *hit.span(group)) for hit in pattern.finditer(data) if hit[group]
            ]
        if self._pii:
            found += [_make_edit(data, *span) for span in personal_data.find_personal_data(data)]
        if self._strict:
            found += [_make_edit(data, *span) for span in random_words(data)]
        return [
            edit for edit in found if not (is_label(edit.secret) or self.keeps_value(edit.secret))
        ]


def _make_edit(data: bytes, start: int, end: int) -> Edit:
    return Edit(start, end, data[start:end], True)


def _compile_names(names: Iterable[str]) -> re.Pattern[str] | None:
    parts = [make_wildcard_expression(name) for name in names]
    return re.compile("|".join(parts)) if parts else None


def _matches_name(names: re.Pattern[str] | None, folded: str) -> bool:
    return names is not None and names.fullmatch(folded) is not None
