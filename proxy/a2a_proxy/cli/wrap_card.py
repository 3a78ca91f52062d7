"""`a2a-proxy wrap-card`: print an agent card whose stdio command is wrapped in
`a2a-proxy stdio`."""

import os
import shutil
import sys
from pathlib import Path

import msgspec

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.errors import print_error
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import raw_output
from a2a_proxy.protocol.stdio_command import is_command, is_stdio
from a2a_proxy.relay.edits.card import read_card, write_card
from a2a_proxy.relay.edits.stdio_command import has_program, is_wrapped, wrap_command

EXIT_UNCHANGED = 1
"""The card was printed unchanged, for a reason printed on stderr."""
_PROGRAM_NAME, _STDIO_COMMAND = "a2a-proxy", "stdio"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXAMPLE_INTERFACE = 'for example: "url": "npx run my-agent", "preferredTransport": "stdio"'


def check_stdio_options(arguments: ProxyArguments) -> None:
    """Raises UserError if `a2a-proxy stdio` would refuse these options."""
    policy_words(arguments.redact, arguments.redact_policy)
    parse_size("--journal-max", arguments.journal_max)


def run_wrap_card(card: Path, options: list[str]) -> int:
    """Print the card of the file, or of stdin (`-`), with `options` for the proxy, and return the
    exit code.

    Raises:
        UserError: the card cannot be read.
    """
    changed, why = wrap_card(_read_card_file(card), options)
    raw_output().write(changed)
    if why is None:
        return 0
    raw_output().flush()
    print_error(_PROGRAM_NAME, why.message, why.hint)
    return EXIT_UNCHANGED


def wrap_card(card_bytes: bytes, options: list[str]) -> tuple[bytes, UserError | None]:
    """Return the card with its stdio commands wrapped and all other bytes unchanged, and the reason
    if it is unchanged.

    Raises:
        UserError: the input is not a card.
    """
    mark, text = (
        (_BYTE_ORDER_MARK, card_bytes[len(_BYTE_ORDER_MARK) :])
        if card_bytes.startswith(_BYTE_ORDER_MARK)
        else (b"", card_bytes)
    )
    hint = "an agent card is one JSON object: check the file or the input"
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError) as wrong:
        raise UserError(f"the card is not JSON: {wrong}", hint) from wrong
    if not isinstance(found, dict):
        raise UserError("the card is JSON, but not an object", hint)
    card = read_card(text, "json")
    urls = [each.text for each in card.urls if is_stdio(each.transport)] if card is not None else []
    commands = [each for each in urls if is_command(each) and has_program(each)]
    if not commands:
        return card_bytes, _no_stdio_error(urls)
    words, program = _proxy_command(options)
    new = {
        each: wrap_command(each, words, program)
        for each in commands
        if not is_wrapped(each, (_PROGRAM_NAME, _STDIO_COMMAND))
    }
    if card is not None and card.signed and new:
        message = (
            "the card is signed, and another command would break its signature: it is printed "
            "unchanged"
        )
        return card_bytes, UserError(
            message, f"ask its issuer for a card with this command: {next(iter(new.values()))}"
        )
    return mark + write_card(text, "json", new), None


def _no_stdio_error(urls: list[str]) -> UserError:
    if urls:
        message = f"nothing to wrap: the stdio interface has {urls[0]!r}, which is not a command"
        return UserError(message, f"replace it with the agent's command, {_EXAMPLE_INTERFACE}")
    return UserError(
        "nothing to wrap: the card has no stdio interface with a command", _EXAMPLE_INTERFACE
    )


def _read_card_file(card: Path) -> bytes:
    if str(card) == "-":
        return sys.stdin.buffer.read()
    try:
        return card.read_bytes()
    except OSError as wrong:
        hint = "name the file with the agent card, or - for stdin"
        raise UserError(
            f"cannot read {card}: {(wrong.strerror or str(wrong)).lower()}", hint
        ) from wrong


def _proxy_command(options: list[str]) -> tuple[list[str], str]:
    """Return the words that precede a command, and this program's path. The name is used if the
    PATH leads to this program."""
    program = os.path.abspath(sys.argv[0])
    found = shutil.which(_PROGRAM_NAME)
    known = found is not None and os.path.realpath(found) == os.path.realpath(program)
    return [_PROGRAM_NAME if known else program, _STDIO_COMMAND, *options, "--"], program
