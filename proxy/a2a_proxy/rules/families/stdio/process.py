"""Rules about the life of the agent's process and the command that starts it (manual/protocol.md
"Stdio")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.stdio_command import is_command, is_stdio
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, RPC, STDIO, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import Json, card, task
from a2a_proxy.rules.examples.pipe import (
    COMMAND,
    close_input,
    close_output,
    exit_agent,
    pipe_call,
    pipe_pause,
    pipe_response,
    pipe_script,
)
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.families.stdio.reading import session_notes
from a2a_proxy.rules.state.card_declarations import indexed_objects, read_interfaces, string_member

_TASK_PARAMS = {"id": "t1"}
_EXIT_GRACE = 5.0
"""Time in seconds that the agent has to exit after its input was closed."""
_SHELL_CHARACTERS = ("$(", "`", "|", ";")


@rule(
    "A2A-STDIO-016",
    "Client does not fetch the agent card first",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="stdio proposal, bootstrap",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    flagged=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()), fetches=False),
    clean=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task())),
)
def no_card(context: RuleContext) -> Iterator[RuleFinding]:
    """The first call after the start of the agent is not GetExtendedAgentCard, and no card of the
    agent has been recorded.

    A card with a stdio interface may be a stub with only a name and a command: the client learns
    the capabilities of the agent from the extended card. The client should call
    GetExtendedAgentCard first.
    """
    exchange = context.exchange
    if (
        exchange.stream == 1
        and exchange.operation != "GetExtendedAgentCard"
        and context.declarations is None
    ):
        yield RuleFinding(
            summary=f"the first call is `{exchange.method[:60]}` instead of "
            f"the one for the agent's "
            f"card"
        )


def _stdio_card(url: str) -> Json:
    kind = "https://example.com/bindings/stdio"
    entry = {"url": url, "protocolBinding": kind, "protocolVersion": "1.0"}
    return card(supportedInterfaces=[*card()["supportedInterfaces"], entry])


@rule(
    "A2A-STDIO-017",
    "`url` of a stdio interface is not a command",
    Severity.WARNING,
    section="stdio proposal, url",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(_stdio_card("https://agent.example.com/")),
    clean=fetch_card(_stdio_card(COMMAND)),
)
def no_command(context: RuleContext) -> Iterator[RuleFinding]:
    """The `url` of a stdio interface in an agent card is missing or is a URL other than
    `stdio:///PATH`; or it is a command with characters that a shell would execute: `$(...)`,
    backticks, `|` or `;`.

    `url` is the command that the client runs. Other URLs cannot be run, and shell syntax lets the
    author of the card run any command on the client's machine. The agent must publish a plain
    command; the client must not pass it to a shell.
    """
    body = read_card(context)
    found = [(offer.path, offer.binding, offer.url) for offer in read_interfaces(body)]
    for name, kind in (
        ("supportedInterfaces", "protocolBinding"),
        ("additionalInterfaces", "transport"),
    ):
        entries = indexed_objects(body.get(name))
        found += [
            (f"{name}[{at}].url", string_member(each, kind), "")
            for at, each in entries
            if not string_member(each, "url")
        ]
    for path, binding, url in found:
        if not is_stdio(binding):
            continue
        danger = next((each for each in _SHELL_CHARACTERS if each in url), "")
        if not is_command(url):
            told = f"{url[:60]} is a URL, not a command" if url else "its `url` is missing"
            yield RuleFinding(
                summary=f"the interface is stdio, but {told}",
                path=f"{context.root}{path}",
                value=url,
            )
        elif danger:
            told = f"the command contains `{danger}`, which a shell would execute"
            yield RuleFinding(summary=told, path=f"{context.root}{path}", value=url)


def _check_exited(context: RuleContext) -> Iterator[RuleFinding]:
    if "exit" not in session_notes(context):
        yield RuleFinding(
            summary=f"the agent's stdin was closed {_EXIT_GRACE:.0f} s ago, "
            f"but its process still runs"
        )


@rule(
    "A2A-STDIO-018",
    "Agent process outlives its client",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="stdio proposal, lifecycle",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    due=_check_exited,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task()),
        close_input(),
        pipe_pause(6),
        close_output(),
        exit_agent(),
    ),
    clean=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task()),
        close_input(),
        pipe_pause(1),
        close_output(),
        exit_agent(),
    ),
)
def outlives(context: RuleContext) -> Iterator[RuleFinding]:
    """The client has closed the agent's stdin, and 5 s later the agent's process still runs.

    A client ends the agent by closing its input. Processes that stay hold memory, ports and files,
    one more after each run. The agent must exit at the end of its input.
    """
    frame = context.frame
    if frame.kind is not FrameKind.CONTROL:
        return
    if frame.note == "exit":
        session_notes(context)["exit"] = True
    elif frame.note == "eof" and frame.direction is Direction.TO_AGENT:
        context.schedule_due(_EXIT_GRACE)
    yield from ()
