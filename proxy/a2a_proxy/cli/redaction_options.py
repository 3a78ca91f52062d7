"""What is redacted, as it is typed: `--redact`, `--redact-policy` and `--keep-secrets`, as the words of a policy."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from a2a_proxy.cli.errors import UserError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_POLICY_SIZE = 1 << 20
"""Bytes of a policy file."""


def add_redaction_options(command: _Command) -> _Command:
    """`--redact` and `--redact-policy`."""
    words = click.option(
        "--redact",
        multiple=True,
        metavar="WHAT",
        help="Also redact: pii, strict, metadata-only, header:NAME, member:NAME, '$.json.path', path:a.b, regex:X; "
        "keep:... leaves something; none leaves all.",
    )
    file = click.option(
        "--redact-policy", type=click.Path(path_type=Path), metavar="FILE", help="The same from a TOML file."
    )
    return words(file(command))


def policy_words(redact: tuple[str, ...], redact_policy: Path | None, *, keep_secrets: bool = False) -> tuple[str, ...]:
    """What the options say, as words of a policy: each once, in one order; none for the default.

    Raises:
        UserError: they say no policy, or contradict one another.
    """
    if not (redact or redact_policy or keep_secrets):
        return ()
    from a2a_proxy.redaction.policy import PolicyError, policy_of, words_of

    try:
        named = words_of(_read_policy_file(redact_policy)) if redact_policy is not None else []
    except PolicyError as wrong:
        raise UserError(f"{redact_policy}: {wrong}", wrong.hint) from wrong
    if keep_secrets and (named or redact) and tuple(redact) != ("none",):
        raise UserError("--keep-secrets keeps everything, and something is to be redacted", "leave one of them out")
    try:
        return policy_of((*named, *redact, *(("none",) if keep_secrets else ()))).words
    except PolicyError as wrong:
        where = "--redact" if redact else str(redact_policy)
        raise UserError(f"{where}: {wrong}", wrong.hint) from wrong


def _read_policy_file(path: Path) -> dict[str, Any]:
    """The tables of the file. Raises UserError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_POLICY_SIZE + 1)
    except OSError as wrong:
        raise UserError(f"cannot read {path}: {(wrong.strerror or str(wrong)).lower()}", "check the name") from wrong
    if len(data) > _MAX_POLICY_SIZE:
        raise UserError(f"{path} is too large for a policy", "name a TOML file of at most 1 MiB")
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise UserError(f"{path} is not TOML: {wrong}", 'for example: preset = "pii"') from wrong
