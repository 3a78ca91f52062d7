"""One secret value in, one label out: what the walkers of JSON, protobuf, headers and text share.

A `Scrubber` knows the key, the names a card taught and the secrets met so far. It works on bytes and knows no format.
"""

from __future__ import annotations

import re

from a2a_proxy.redaction import json_walk, secret_patterns
from a2a_proxy.redaction.known_secrets import KnownSecrets
from a2a_proxy.redaction.labels import is_label, label
from a2a_proxy.redaction.scope import INNER
from a2a_proxy.redaction.secret_names import fold, hides_text, is_learned, member_kind, secret_header, secret_member

_MAX_NESTING = 4
"""JSON in a string in JSON: deeper than this it is read as text."""


class Scrubber:
    """Replaces secrets in bytes by labels, and remembers those that stood in a known place."""

    shortest = 6
    """Bytes: shorter strings hold no secret but by their name."""
    hidden: re.Pattern[str] | None = None
    """Places of payloads that are to go whole (`paths`)."""
    spared: re.Pattern[str] | None = None
    """Places of payloads that stay as they are."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.seen = KnownSecrets()
        self.names: set[str] = set()

    def learn_names(self, folded: set[str]) -> None:
        """More names that hold secrets, folded."""
        self.names |= folded
        self.seen.generation += 1

    def label(self, secret: bytes) -> bytes:
        """The label of a secret, as bytes."""
        return label(self._key, secret).encode()

    def suspicious(self, data: bytes) -> bool:
        """Whether there may be anything to replace: the sieve of the hot path. No miss, some false alarms."""
        if secret_patterns.suspicious(data) or self.seen.hit(data):
            return True
        return bool(self.names) and self._has_learned(data)

    def _has_learned(self, data: bytes) -> bool:
        plain = data.lower().translate(None, b"_-. ")
        return any(name.encode() in plain for name in self.names)

    def learn(self, secret: bytes) -> None:
        """A secret from a known place; of Basic credentials the password too."""
        self.seen.add(secret)
        password = secret_patterns.basic_secret(secret)
        if password is not None:
            self.seen.add(password)

    def hide(self, value: bytes) -> bytes:
        """The label of a value at a `hidden` place."""
        return self.label(value)

    def column(self, data: bytes) -> bytes | None:  # noqa: ARG002 - a policy may have hidden it
        """The label of a text that stands for itself beside a payload; None where it stays."""
        return None

    def spares(self, secret: bytes) -> bool:  # noqa: ARG002 - a policy may want it to stay
        """It stays, though it is a secret."""
        return False

    def names_secret(self, name: str) -> bool:
        """Whether a member or header of that name holds a secret, by nature or because a card said so."""
        return secret_header(name) or secret_member(name) or fold(name) in self.names

    def known(self, folded: str, value: bytes) -> bytes | None:
        """The value of a secret name with its secrets replaced; None where nothing had to change."""
        new, done = b"", 0
        for start, end in secret_patterns.value_spans(folded, value):
            secret = value[start:end]
            if is_label(secret) or self.spares(secret):
                continue
            if is_learned(folded):
                self.learn(secret)
            new += value[done:start] + self.label(secret)
            done = end
        return new + value[done:] if done else None

    def header(self, name: bytes, value: bytes) -> bytes:
        """A header or metadata value, clean."""
        if self.holds_secret(name):
            new = self.known(plain_name(name), value)
            value = value if new is None else new
        return self.text(value)

    def holds_secret(self, name: bytes) -> bool:
        """Whether a header field of that name holds a secret, by nature or because a card said so."""
        return secret_header(name.decode("latin-1")) or plain_name(name) in self.names

    def string(self, value: bytes, name: str | None, cut: bool, depth: int = 0) -> bytes | None:
        """A string of a payload, decoded, and its name; None where nothing had to change."""
        if not value:
            return None
        if name is not None and (hides_text(member_kind(name), value) or fold(name) in self.names):
            return self.known(fold(name), value)
        if len(value) < self.shortest and not cut:
            return None
        if not cut and not self.suspicious(value):
            return None
        if value[0] in b"{[" and depth < _MAX_NESTING and json_walk.valid(value):
            new = json_walk.walk(value, lambda inner, key, end: self.string(inner, key, end, depth + 1), scope=INNER)[0]
        else:
            new = self.text(value, cut=cut)
        return None if new == value else new

    def text(self, data: bytes, *, cut: bool = False) -> bytes:
        """Free text, clean. `cut`: its end is missing, and what a secret's beginning looks like is one."""
        if not cut and not self.suspicious(data):
            return data
        edits = self.edits(data, cut=cut)
        for edit in edits:
            if edit.known:
                self.learn(edit.secret)
        edits += [secret_patterns.Edit(*hit, False) for hit in self.seen.find(data)]
        if cut and (tail := self.seen.tail(data)):
            edits.append(secret_patterns.Edit(*tail, False))
        return self._apply(data, edits)

    def edits(self, data: bytes, *, cut: bool) -> list[secret_patterns.Edit]:
        """The secrets in some text, but for those that were met elsewhere."""
        return secret_patterns.find(data, self.names, cut=cut)

    def _apply(self, data: bytes, edits: list[secret_patterns.Edit]) -> bytes:
        """All edits at once. Where two overlap, the union gets the label of the one that starts first."""
        pieces: list[bytes] = []
        done = 0
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
            if edit.start >= done:
                pieces += (data[done : edit.start], self.label(edit.secret))
            done = max(done, edit.end)
        pieces.append(data[done:])
        return b"".join(pieces)


def plain_name(name: bytes) -> str:
    """The folded name of a header field, that of gRPC's `-bin` form too."""
    return fold(name.decode("latin-1").lower().removesuffix("-bin"))
