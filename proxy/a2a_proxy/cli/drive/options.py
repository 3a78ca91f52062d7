"""Parse the options of a drive. Opens nothing."""

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from a2a_proxy.cli.match_options import parse_match_on, parse_match_rule
from a2a_proxy.drive.compare_policy import ComparePolicy
from a2a_proxy.drive.request import Credentials, RequestedTarget
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.recording.difference.fields import Path as ValuePath
from a2a_proxy.recording.difference.paths import PathError, parse_path
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.replay.core.match_rules import MatchName, check_expressions, parse_ignored

HEADERS_VARIABLE = "A2A_PROXY_DRIVE_HEADERS"
"""Environment variable with headers, one per line, for credentials that must not appear in a list
of processes."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class DriveCommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one drive."""

    recording: Path
    upstream: str
    upstream_grpc: str = ""
    command: tuple[str, ...] = ()
    """Command of a stdio agent."""
    target: RequestedTarget = RequestedTarget()
    speed: float = 0.0
    timeout: float = 30.0
    where: str = ""
    credentials: Credentials = Credentials()
    compare_policy: ComparePolicy = ComparePolicy()
    output_format: str = "text"
    output: Path | None = None
    record: Path | None = None
    allow_incomplete: bool = False
    upstream_ca: Path | None = None
    upstream_insecure: bool = False
    redact: tuple[str, ...] = ()
    """Further words of the redaction policy."""
    hidden_values: tuple[str, ...] = ()
    """Secrets in the command line, besides the credentials."""


def parse_speed(word: str) -> float:
    """Return the speed: `instant` is 0, `recorded` 1, a number itself. Raises UserError."""
    named = {"instant": 0.0, "recorded": 1.0}.get(word)
    try:
        value = named if named is not None else float(word.removesuffix("x"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf") or (named is None and value == 0):
        raise UserError(
            f"--speed: {word!r} is not a speed", "write instant, recorded, or a number: --speed 10"
        )
    return value


def parse_headers(words: tuple[str, ...]) -> Headers:
    """Parse headers written as `Name: value`; headers of the environment are first. Raises
    UserError."""
    made = []
    for word in (*filter(None, os.environ.get(HEADERS_VARIABLE, "").split("\n")), *words):
        name, colon, value = word.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name.strip()) or not value.strip().isprintable():
            # The text may be a credential, so it is not printed.
            raise UserError(
                f"a --header, or one of {HEADERS_VARIABLE}, is not a header",
                "for example: --header 'Authorization: Bearer TOKEN'",
            )
        made.append((name.strip().encode("latin-1"), value.strip().encode()))
    return tuple(made)


def parse_credentials(words: tuple[str, ...]) -> Credentials:
    """Parse headers; one named like a label provides the credential that the label replaces. Raises
    UserError."""
    given = parse_headers(words)
    secrets = {name: value for name, value in given if is_label(name)}
    return Credentials(tuple(each for each in given if each[0] not in secrets), secrets=secrets)


def parse_compare_policy(
    strict: bool,
    shape: bool,
    ignore: tuple[str, ...],
    normalize: tuple[str, ...] = (),
    match_on: tuple[str, ...] = (),
) -> ComparePolicy:
    """Return the comparison policy of the options. Raises UserError if they contradict each other,
    or a path or expression is invalid.
    """
    if strict and shape:
        raise UserError("--strict and --shape contradict each other", "choose one of them")
    selected = parse_match_on(match_on)
    names = frozenset(each for each in selected if isinstance(each, MatchName))
    return ComparePolicy(
        strict,
        shape,
        normalize=parse_match_rule("--normalize", check_expressions, normalize),
        ignore=parse_match_rule("--ignore", parse_ignored, ignore),
        match_on=names if match_on else None,
        matchers=tuple(each for each in selected if not isinstance(each, MatchName)),
    )


def drive_command_options(
    *,
    header: tuple[str, ...],
    strict: bool,
    shape: bool,
    ignore: tuple[str, ...],
    speed: str,
    timeout: float,
    binding: str | None,
    dialect: str | None,
    **typed: Any,
) -> DriveCommandOptions:
    """Return the options of a drive. Raises UserError."""
    _check_target(
        typed["upstream"], typed["command"], binding, f"a2a-proxy drive {typed['recording']}"
    )
    _check_timeout(timeout)
    rules = typed.pop("normalize", ()), typed.pop("match_on", ())
    return DriveCommandOptions(
        credentials=parse_credentials(header),
        compare_policy=parse_compare_policy(strict, shape, ignore, *rules),
        speed=parse_speed(speed),
        timeout=timeout,
        target=_parse_target(binding, dialect, typed["command"]),
        **typed,
    )


class Assignment(msgspec.Struct, frozen=True):
    """A new value of one member of a request."""

    path: ValuePath
    """Its path from the root of the request."""
    value: Any
    text: str
    """The value as given."""


class SendOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one call that is sent again."""

    drive: DriveCommandOptions
    place: str
    request: Path | None = None
    """File with the request to send."""
    assignments: tuple[Assignment, ...] = ()
    edit: bool = False
    as_recorded: bool = False
    force: bool = False
    diff: bool = False


def send_options(
    *,
    assignments: tuple[str, ...],
    header: tuple[str, ...],
    timeout: float,
    binding: str | None,
    dialect: str | None,
    **typed: Any,
) -> SendOptions:
    """Return the options of `send`. Raises UserError."""
    _check_target(
        typed["upstream"],
        typed["command"],
        binding,
        f"a2a-proxy send {typed['recording']} {typed['place']}",
    )
    _check_timeout(timeout)
    own = {
        name: typed.pop(name)
        for name in ("place", "request", "edit", "as_recorded", "force", "diff")
    }
    drive = DriveCommandOptions(
        credentials=parse_credentials(header),
        compare_policy=ComparePolicy(ignore=(("request",), ("findings",))),
        timeout=timeout,
        target=_parse_target(binding, dialect, typed["command"]),
        allow_incomplete=True,
        **typed,
    )
    return SendOptions(drive=drive, assignments=tuple(map(_parse_assignment, assignments)), **own)


def _parse_assignment(words: str) -> Assignment:
    """Parse `path=value`, the value as JSON if it is JSON, else as text. Raises UserError."""
    path, equals, text = words.partition("=")
    try:
        steps = parse_path(path)
        if not equals or "*" in steps:
            raise PathError(path)
    except PathError:
        hint = "for example: --set 'message.parts[0].text=a table for two'"
        # The value may be a credential, so it is not printed.
        raise UserError(f"--set: {path!r} is not the path of one value", hint) from None
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return Assignment(steps[1:] if steps[0] == "$" else steps, value, text)


def _parse_target(
    binding: str | None, dialect: str | None, command: tuple[str, ...]
) -> RequestedTarget:
    return RequestedTarget(_parse_binding(binding, command), Dialect(dialect) if dialect else None)


def _check_timeout(timeout: float) -> None:
    """Raises UserError."""
    if not 0 < timeout < 86_400:
        raise UserError(
            f"--timeout: {timeout:g} is not a valid number of seconds", "for example: --timeout 30"
        )


def _parse_binding(word: str | None, command: tuple[str, ...]) -> Binding | None:
    """Return the requested binding; a command implies stdio."""
    if word is None:
        return Binding.STDIO if command else None
    return Binding(word)


def _check_target(upstream: str, command: tuple[str, ...], binding: str | None, call: str) -> None:
    """Check that there is exactly one agent; `call` is the beginning of the command line. Raises
    UserError."""
    if command and upstream:
        raise UserError("--upstream and a command name two agents", "choose one of them")
    if binding == "stdio" and not command:
        hint = f"for example: {call} --binding stdio -- python my_agent.py"
        raise UserError("the command of the stdio agent is missing", hint)
    if command and binding not in (None, "stdio"):
        raise UserError(
            f"a command is a stdio agent, not one of {binding}",
            "leave --binding out, or use --upstream instead of a command",
        )
    if not command and not upstream:
        raise UserError("--upstream is missing", f"for example: {call} --upstream localhost:8000")
