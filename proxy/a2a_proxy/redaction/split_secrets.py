"""Secrets that arrive in pieces: a private key in the lines of a log, a token in the chunks of an
artifact.

Each piece is recorded as it arrives, before the next one. So a piece is judged together with the
end of the text before it, and the beginning of a key at its end counts as a key as soon as it looks
generated. Of a key, the prefix and a few characters may have been recorded before.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk
from a2a_proxy.redaction.key_formats import FORMATS
from a2a_proxy.redaction.known_secrets import SHORTEST
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_patterns import Edit, find_beginnings, looks_random

LONGEST_KEY: Final = 16 << 10
"""Bytes after the first line of a private key that are replaced if its last line does not
follow."""
LONGEST_TAIL: Final = 512
"""Bytes of the text before a piece that are judged with it, at most."""
MAX_TEXTS: Final = 2048
"""Texts whose end is remembered; the oldest is forgotten first."""
_KEY_HEAD: Final = 256
"""Bytes of the beginning of a longer secret that are judged with its next piece."""
_CAPITALS: Final = 12
"""Characters of a word of capitals that may be the beginning of a key, at least."""
_SHORT_TAIL: Final = 48
"""Bytes of a text that are not worth to be shortened."""
_TAIL_WORDS: Final = 4
"""Words of the text before a piece that are judged with it: `-----BEGIN RSA PRIVATE KEY-----` has
four."""
_KEY_BEGIN: Final = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?=[ \t]*+[^ \t\n]*+[ \t]*+(?:\n|\Z))"
)
"""The first line of a private key. Nothing but one word follows it in its line, unlike in a
sentence."""
_KEY_END: Final = b"-----END"

_CUT_AFTER_MIDDLE: Final = re.compile(
    "|".join(
        rf"{form.before}{form.near}{re.escape(prefix)}(?:{form.after})?[{form.alphabet}]*\Z"
        for form in FORMATS
        if form.near
        for prefix in form.prefixes
    ).encode()
)
"""The beginning of a key whose form shows in its middle, up to the end of the text."""

_CLOSINGS: Final = ((b'"', b'"'), (b"'", b"'"), (b">", b"</"))
"""What a value begins with, and what closes it."""

Place = tuple[int, int, int, str]
"""The text that a piece belongs to: its connection, exchange and direction, and the id of its
artifact."""


class OpenText(msgspec.Struct):
    """A text of which more pieces may follow."""

    frame: tuple[int, int] = (-1, -1)
    """Numbers of the exchange and of the frame with the last piece."""
    tail: bytes = b""
    """The end of the text so far, unredacted."""
    key_left: int = 0
    """Bytes of an open private key that may follow; 0 if none is open."""


class SplitSecrets:
    """The ends of the texts of one session."""

    def __init__(self, scrub: Scrubber) -> None:
        self._scrub = scrub
        self.texts: dict[Place, OpenText] = {}

    def redact_pieces(
        self, place: Place, frame: tuple[int, int], pieces: list[bytes], *, is_line: bool
    ) -> list[bytes]:
        """Return the next pieces of a text without the parts of secrets that began before or that
        they leave open.

        `frame` is the number of the exchange and of the frame with the pieces. If it is not higher
        than before, a new text begins: the frames are read a second time. Of lines, only private
        keys continue in the next piece.
        """
        text = self.texts.get(place)
        if text is None or frame <= text.frame:
            self.forget_text(place)
            if is_line and not any(b"PRIVATE KEY" in piece for piece in pieces):
                return pieces
            text = self._begin_text(place)
        text.frame = frame
        return [
            (self._redact_key_piece if text.key_left else self._redact_open_piece)(
                text, piece, is_line=is_line
            )
            for piece in pieces
        ]

    def accept_clean_piece(
        self,
        place: Place,
        frame: tuple[int, int],
        chunk: ArtifactChunk,
        payload: bytes,
    ) -> bool:
        """Add the next piece of a text, if one test finds that neither the text nor the payload
        of the chunk can hold a secret; return False if the piece must be redacted.

        An empty payload means that both have been tested. A payload that differs in its text alone
        from one without secrets has no other secret either.
        """
        text = self.texts.get(place)
        if text is None or frame <= text.frame:
            text = self._begin_text(place)
        data = text.tail + chunk.text
        if text.key_left or (_ends_generated(data) and self._may_end_in_secret(data)):
            return False
        if payload and self._scrub.may_hold_secret(
            data if self.is_clean_around(chunk) else b"\n".join((data, payload))
        ):
            return False
        text.frame, text.tail = frame, _tail_of(data)
        if chunk.place is not None:
            chunk.place.clean_at = self._scrub.seen.change_count
        return True

    def is_clean_around(self, chunk: ArtifactChunk) -> bool:
        """Whether the payload of a chunk is known to have no secret around its text."""
        place = chunk.place
        return place is not None and place.clean_at == self._scrub.seen.change_count

    def tail_before(self, place: Place, frame: tuple[int, int]) -> bytes:
        """Return the end of the text that this frame continues."""
        text = self.texts.get(place)
        return text.tail if text is not None and frame > text.frame else b""

    def _begin_text(self, place: Place) -> OpenText:
        for oldest in (place, *keys_to_evict(self.texts, MAX_TEXTS)):
            self.forget_text(oldest)
        text = self.texts[place] = OpenText()
        return text

    def forget_text(self, place: Place) -> None:
        """Forget a text that is complete."""
        self.texts.pop(place, None)

    def _redact_key_piece(self, text: OpenText, piece: bytes, *, is_line: bool) -> bytes:
        """Redact a piece of a text with an open private key."""
        data = text.tail + piece
        end = data.find(_KEY_END)
        if end < 0:
            text.key_left = max(text.key_left - len(piece), 0)
            text.tail = b"" if is_line else data[1 - len(_KEY_END) :]
            return self._label(piece)
        inside = max(end - len(text.tail), 0)
        text.key_left, text.tail = 0, b""
        return self._label(piece[:inside]) + self._redact_open_piece(
            text, piece[inside:], is_line=is_line
        )

    def _redact_open_piece(self, text: OpenText, piece: bytes, *, is_line: bool) -> bytes:
        data, offset = text.tail + piece, len(text.tail)
        text.tail = b"" if is_line else _tail_of(data)
        edits = [] if is_line else self._find_edits(data)
        cut = min((edit.start for edit in edits if edit.end == len(data)), default=len(data))
        if len(data) - cut > _KEY_HEAD:  # its form shows at its beginning
            text.tail = data[cut : cut + _KEY_HEAD]
        last = data.rfind(b"-----BEGIN ")
        begin = _KEY_BEGIN.match(data, last) if last >= 0 else None
        if begin is not None and data.find(_KEY_END, begin.end()) < 0:
            text.key_left, text.tail = LONGEST_KEY, b""
            rest = data[max(begin.end(), offset) :]
            if rest.strip() and not is_line:  # the rest of a line is judged with the line
                edits.append(Edit(len(data) - len(rest), len(data), rest, False))
        moved = [
            (edit, max(edit.start - offset, 0), edit.end - offset)
            for edit in edits
            if edit.end > offset
        ]
        inside = [edit._replace(start=start, end=end) for edit, start, end in moved]
        return self._scrub.apply_edits(piece, inside) if inside else piece

    def _find_edits(self, data: bytes) -> list[Edit]:
        """Return the edits for the secrets in a text, the last of which may be incomplete."""
        if not _ends_generated(data) and not self._scrub.may_hold_secret(data):
            return []
        edits = [
            edit
            for edit in (*self._scrub.find_edits(data, cut=True), *self._find_open_values(data))
            if edit.known or edit.end < len(data) or _looks_generated(edit.secret)
        ]
        if cut := _CUT_AFTER_MIDDLE.search(data, max(0, len(data) - LONGEST_TAIL)):
            edits.append(Edit(*cut.span(), cut[0], False))
        for edit in edits:
            if edit.known and edit.end < len(data):
                self._scrub.learn_secret(edit.secret)
        known = self._scrub.seen.find_secrets(data)
        if (beginning := self._scrub.seen.find_cut_secret(data)) and beginning[1] - beginning[
            0
        ] >= SHORTEST:
            known.append(beginning)
        return edits + [Edit(*hit, False) for hit in known]

    def _find_open_values(self, data: bytes) -> Iterator[Edit]:
        """Yield the values at the end of a text whose quote or element is not closed yet."""
        for begin, close in _CLOSINGS:
            if begin in data:
                found = self._scrub.find_edits(data + close, cut=True)
                yield from (edit for edit in found if edit.end == len(data))

    def _may_end_in_secret(self, data: bytes) -> bool:
        """Whether the end of a text may be the beginning of a secret."""
        return bool(
            find_beginnings(data)
            or _CUT_AFTER_MIDDLE.search(data, max(0, len(data) - LONGEST_TAIL))
            or self._scrub.seen.find_cut_secret(data)
        )

    def _label(self, piece: bytes) -> bytes:
        return self._scrub.apply_edits(
            piece, [Edit(0, len(piece), piece, False)] if piece.strip() else []
        )


def _ends_generated(data: bytes) -> bool:
    """Whether the last word of a text may be the beginning of a key."""
    words = data.rsplit(None, 1)
    return bool(words) and len(words[-1]) >= SHORTEST and _looks_generated(words[-1])


def _looks_generated(word: bytes) -> bool:
    """Whether a word may be the beginning of a key; keys of capitals alone have digits only here
    and there."""
    return looks_random(word) or (len(word) >= _CAPITALS and word.isupper())


def _tail_of(data: bytes) -> bytes:
    """Return the last words of a text, and all white space between and after them; all of a short
    text."""
    if len(data) <= _SHORT_TAIL:
        return data
    words = data.rsplit(None, _TAIL_WORDS)
    start = len(words[0]) if len(words) > _TAIL_WORDS else 0
    return data[max(start, len(data) - LONGEST_TAIL) :]
