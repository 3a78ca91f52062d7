"""The card to check: fetched from a URL, or read from a file or from standard input."""

import asyncio
import sys
from pathlib import Path

import msgspec

from a2a_inspect.data.recording_choice import STDOUT
from a2a_proxy.cli.card.response import MAX_CARD_BYTES, CardResponse, describe_text
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.bindings.card import WELL_KNOWN_PATHS

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HINT = "an agent card is one JSON object: check the file or the input"


class CardSource(msgspec.Struct, frozen=True):
    """A card and where it is from."""

    name: str
    """The URL as it may be printed, the file, or `stdin`."""
    responses: list[CardResponse]
    """The responses in order; the last one has the card. The head of a card that was not fetched is
    invented."""
    fetched: bool
    notes: list[str] = []


def read_source(word: str) -> CardSource:
    """Return the card of a URL (with `://`), of standard input (`-`) or of a file.

    Raises:
        UserError: there is no JSON object.
    """
    if "://" in word:
        from a2a_proxy.cli.card.fetch import fetch_card

        responses = asyncio.run(fetch_card(word))
        # The note that the card was found only at the path of earlier versions.
        *failed, found = responses
        return CardSource(
            responses[-1].url,
            responses,
            True,
            [f"note: {found.path} answered; {each.path} answered {each.status}" for each in failed],
        )
    name = "stdin" if Path(word) == STDOUT else word
    body = _read_bytes(word, name).removeprefix(_BYTE_ORDER_MARK)
    response = CardResponse(
        name, WELL_KNOWN_PATHS[0], 200, "OK", ((b"Content-Type", b"application/json"),), body
    )
    if not response.is_object:
        raise UserError(f"{name} {describe_text(body)}", _HINT)
    return CardSource(name, [response], False)


def _read_bytes(word: str, name: str) -> bytes:
    try:
        if name == "stdin":
            data = sys.stdin.buffer.read(MAX_CARD_BYTES + 1)
        else:
            with Path(word).open("rb") as file:
                data = file.read(MAX_CARD_BYTES + 1)
    except OSError as wrong:
        hint = f"name a file, - for stdin, or a URL with its scheme: http://{word}"
        raise UserError(
            f"cannot read {word}: {(wrong.strerror or str(wrong)).lower()}", hint
        ) from wrong
    if len(data) > MAX_CARD_BYTES:
        raise UserError(f"{name} has more than 1 MiB: this is not an agent card", _HINT)
    return data
