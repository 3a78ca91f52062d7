"""Replacement of secrets by labels, common to the walkers of JSON, protobuf, headers and text.

A `Scrubber` holds the key, the names learned from cards and the known secrets. It works on bytes of
any format.
"""

import re
from typing import Final

from a2a_proxy.redaction import json_walk, secret_patterns
from a2a_proxy.redaction.known_secrets import KnownSecrets
from a2a_proxy.redaction.labels import is_label, make_label
from a2a_proxy.redaction.scope import INNER
from a2a_proxy.redaction.secret_names import (
    fold_name,
    hides_text,
    is_learned,
    member_kind,
    secret_header,
    secret_member,
)

_MAX_NESTING = 4
"""Levels of JSON in strings of JSON. Deeper levels are treated as text."""


class Scrubber:
    """Replaces secrets in bytes by labels, and remembers secrets from known places."""

    shortest = 6
    """Bytes. Shorter strings are secrets only by their name."""
    hidden: re.Pattern[str] | None = None
    """Places of payloads whose values are always replaced (`payload_paths`)."""
    spared: re.Pattern[str] | None = None
    """Places of payloads whose values stay."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.seen = KnownSecrets()
        self.names: set[str] = set()

    def learn_names(self, folded: set[str]) -> None:
        """Add names, folded, whose values are secrets."""
        self.names |= folded
        self.seen.change_count += 1

    def make_label(self, secret: bytes) -> bytes:
        """Return the label of a secret, as bytes."""
        return make_label(self._key, secret).encode()

    def may_hold_secret(self, data: bytes, *, is_payload: bool = False) -> bool:
        """Whether the data may contain secrets: the sieve of the hot path. No false negatives, some
        false positives."""
        searches = secret_patterns.choose_searches(data)
        if searches and not (is_payload and searches == _SESSIONS and _has_only_own_session(data)):
            return True
        if self.seen.may_contain_secret(data):
            return True
        return bool(self.names) and self._has_learned(data)

    def _has_learned(self, data: bytes) -> bool:
        plain = data.lower().translate(None, b"_-. ")
        return any(name.encode() in plain for name in self.names)

    def learn_secret(self, secret: bytes) -> None:
        """Remember a secret from a known place; of Basic credentials, the password too."""
        self.seen.add(secret)
        password = secret_patterns.basic_secret(secret)
        if password is not None:
            self.seen.add(password)

    def hide_value(self, value: bytes) -> bytes:
        """Return the label of a value at a `hidden` place."""
        return self.make_label(value)

    def redact_column(self, data: bytes) -> bytes | None:  # noqa: ARG002 - a subclass uses it
        """Return the label of the text of a column, or None if it stays."""
        return None

    def keeps_value(self, secret: bytes) -> bool:  # noqa: ARG002 - a subclass uses it
        """Whether a policy keeps this secret."""
        return False

    def names_secret(self, name: str) -> bool:
        """Whether a member or header of that name holds a secret, by its name or by an agent
        card."""
        return secret_header(name) or secret_member(name) or fold_name(name) in self.names

    def redact_named_value(self, folded: str, value: bytes) -> bytes | None:
        """Return the value of a secret name with its secrets replaced, or None if it stays."""
        new, done = b"", 0
        for start, end in secret_patterns.value_spans(folded, value):
            secret = value[start:end]
            if is_label(secret) or self.keeps_value(secret):
                continue
            if is_learned(folded):
                self.learn_secret(secret)
            new += value[done:start] + self.make_label(secret)
            done = end
        return new + value[done:] if done else None

    def redact_header(self, name: bytes, value: bytes) -> bytes:
        """Return a header or metadata value without secrets."""
        if self.holds_secret(name):
            new = self.redact_named_value(plain_name(name), value)
            value = value if new is None else new
        return self.redact_text(value)

    def holds_secret(self, name: bytes) -> bool:
        """Whether a header field of that name holds a secret, by its name or by an agent card."""
        return secret_header(name.decode("latin-1")) or plain_name(name) in self.names

    def redact_string(
        self, value: bytes, name: str | None, cut: bool, depth: int = 0
    ) -> bytes | None:
        """Return the replacement of a decoded string with that name, or None if it stays."""
        if not value:
            return None
        if name is not None and (
            hides_text(member_kind(name), value) or fold_name(name) in self.names
        ):
            return self.redact_named_value(fold_name(name), value)
        if len(value) < self.shortest and not cut:
            return None
        if not cut and not self.may_hold_secret(value):
            return None
        if value[0] in b"{[" and depth < _MAX_NESTING and json_walk.is_valid_json(value):
            new = json_walk.redact_json(
                value,
                lambda inner, key, end: self.redact_string(inner, key, end, depth + 1),
                scope=INNER,
            )[0]
        else:
            new = self.redact_text(value, cut=cut)
        return None if new == value else new

    def redact_text(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return text without secrets. `cut`: its end is missing, so the beginning of a secret
        counts as one."""
        if not cut and not self.may_hold_secret(data):
            return data
        edits = self.find_edits(data, cut=cut)
        for edit in edits:
            if edit.known:
                self.learn_secret(edit.secret)
        edits += [secret_patterns.Edit(*hit, False) for hit in self.seen.find_secrets(data)]
        if cut and (tail := self.seen.find_cut_secret(data)):
            edits.append(secret_patterns.Edit(*tail, False))
        return self.apply_edits(data, edits)

    def find_edits(self, data: bytes, *, cut: bool) -> list[secret_patterns.Edit]:
        """Return the edits for the secrets in a text, except secrets known from elsewhere."""
        return secret_patterns.find_secrets(data, self.names, cut=cut)

    def apply_edits(self, data: bytes, edits: list[secret_patterns.Edit]) -> bytes:
        """Apply all edits at once. The union of overlapping edits gets the label of the first
        one."""
        pieces: list[bytes] = []
        done = 0
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
            if edit.start >= done:
                pieces += (data[done : edit.start], self.make_label(edit.secret))
            done = max(done, edit.end)
        pieces.append(data[done:])
        return b"".join(pieces)


_SESSIONS: Final = [secret_patterns.SESSIONS]
_SESSION: Final = re.compile(secret_patterns.SESSIONS.trigger.encode())
_OWN_SESSION: Final = re.compile(
    rb"\{[^{}\[\]]*\"(?:params|result)\"\s*:\s*\{[^{}\[\]]*(?i:\"session_?id\"\s*:)"
)


def _has_only_own_session(data: bytes) -> bool:
    """Whether the only session is that of a task of A2A 0.1, which stays (`scope.judged_name`)."""
    return (
        _OWN_SESSION.match(data) is not None
        and sum(1 for _ in _SESSION.finditer(data)) == 1
        and json_walk.is_valid_json(data)
    )


def plain_name(name: bytes) -> str:
    """Return the folded name of a header field, without the `-bin` of gRPC."""
    return fold_name(name.decode("latin-1").lower().removesuffix("-bin"))
