"""`--card-keys`: the file of keys that verify signatures of agent cards."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError

if TYPE_CHECKING:
    from a2a_proxy.cards.verify import CardVerifier

MAX_BYTES = 1 << 20
_HINT = "the file must hold public keys: a JWK set, one JWK, or PEM"


def load_card_verifier(path: Path) -> tuple[CardVerifier, str]:
    """Return the verifier with the keys of `--card-keys FILE`, and what the user should know about
    the file; empty if there is nothing.

    Raises:
        UserError: the extra is not installed, or the file cannot be read or has no keys.
    """
    if not all(map(importlib.util.find_spec, ("jwt", "cryptography", "rfc8785"))):
        raise UserError("--card-keys needs the extra cards", install_hint("cards"))
    from a2a_proxy.cards.keys import KeyFileError, parse_keys
    from a2a_proxy.cards.verify import CardVerifier

    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as wrong:
        raise UserError(
            f"cannot read --card-keys {path}: {(wrong.strerror or str(wrong)).lower()}", _HINT
        ) from wrong
    if len(data) > MAX_BYTES:
        raise UserError(f"--card-keys {path} has more than 1 MiB", _HINT)
    try:
        found = parse_keys(data)
    except KeyFileError as wrong:
        raise UserError(f"--card-keys {path}: {wrong}", _HINT) from wrong
    note = ""
    if found.private:
        labels = ", ".join(found.private[:3]) + (", ..." if len(found.private) > 3 else "")
        note = (
            f"--card-keys {path} has private keys ({labels}): only their public parts are used, "
            f"which are enough"
        )
    return CardVerifier(found.keys), note
