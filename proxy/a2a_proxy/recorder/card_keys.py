"""The verifier of signed cards in the recorder: its keys are read here, and only if the user named a file."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.cards.verify import CardVerifier


def load_verifier(path: str) -> CardVerifier:
    """Return the verifier with the keys of a file; an empty path is none.

    The command line has checked the file. A recorder that starts again after the file has changed must not fail, so its
    signatures then say why they are not verified.
    """
    if not path:
        return CardVerifier()
    from a2a_proxy.cards.keys import KeyFileError, parse_keys

    try:
        return CardVerifier(parse_keys(Path(path).read_bytes()).keys)
    except (OSError, KeyFileError):
        return CardVerifier(reason="the file of --card-keys can no longer be read")
