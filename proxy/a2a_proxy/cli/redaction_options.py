"""The options of the redaction, `--redact` and `--redact-policy`, and their words
of a policy."""

from pathlib import Path
from typing import Any

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.options import add_options
from a2a_proxy.model.errors import UserError

_MAX_POLICY_SIZE = 1 << 20
"""Bytes of a policy file."""


add_redaction_options = add_options(
    ProxyArguments, names=("redact", "redact_policy"), environment=False
)
"""Adds `--redact` and `--redact-policy` to a command of `a2a-inspect`."""


def policy_words(redact: tuple[str, ...], redact_policy: Path | None) -> tuple[str, ...]:
    """Return the options as words of a policy: each once, in a fixed order; empty for the default.

    Raises:
        UserError: the policy is invalid, or its words contradict one another.
    """
    if not (redact or redact_policy):
        return ()
    from a2a_proxy.redaction.policy import PolicyError, policy_of, words_of

    try:
        named = words_of(_read_policy_file(redact_policy)) if redact_policy is not None else []
    except PolicyError as wrong:
        raise UserError(f"{redact_policy}: {wrong}", wrong.hint) from wrong
    try:
        return policy_of((*named, *redact)).words
    except PolicyError as wrong:
        where = "--redact" if redact else str(redact_policy)
        raise UserError(f"{where}: {wrong}", wrong.hint) from wrong


def _read_policy_file(path: Path) -> dict[str, Any]:
    """Return the tables of the file. Raises UserError."""
    import tomllib

    try:
        with path.open("rb") as file:
            data = file.read(_MAX_POLICY_SIZE + 1)
    except OSError as wrong:
        raise UserError(
            f"cannot read {path}: {(wrong.strerror or str(wrong)).lower()}", "check the name"
        ) from wrong
    if len(data) > _MAX_POLICY_SIZE:
        raise UserError(f"{path} is too large for a policy", "name a TOML file of at most 1 MiB")
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise UserError(f"{path} is not TOML: {wrong}", 'for example: preset = "pii"') from wrong
