"""The life of the agent's process, and the command that begins it (manual/protocol.md "Stdio")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
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
"""Seconds."""
_SHELL_CHARACTERS = ("$(", "`", "|", ";")


@rule(
    "A2A-STDIO-016",
    "The card is not fetched first",
    Severity.INFO,
    section="stdio proposal, bootstrap",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()), fetches=False),
    clean=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task())),
)
def no_card(context: RuleContext) -> Iterator[RuleFinding]:
    """The first call after the agent was spawned is not the one for the extended card, and no card of the agent has
    been seen.

    A card with a stdio interface may be a stub, with a name and a command: what the agent can do a client learns from
    the card it asks for.
    """
    exchange = context.exchange
    if exchange.stream == 1 and exchange.operation != "GetExtendedAgentCard" and context.declarations is None:
        yield RuleFinding(summary=f"the first call is `{exchange.method[:60]}`, not the one for the agent's card")


def _stdio_card(url: str) -> Json:
    kind = "https://example.com/bindings/stdio"
    entry = {"url": url, "protocolBinding": kind, "protocolVersion": "1.0"}
    return card(supportedInterfaces=[*card()["supportedInterfaces"], entry])


@rule(
    "A2A-STDIO-017",
    "The url of a stdio interface is no command",
    Severity.WARNING,
    section="stdio proposal, url",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    draft=True,
    flagged=fetch_card(_stdio_card("https://agent.example.com/")),
    clean=fetch_card(_stdio_card(COMMAND)),
)
def no_command(context: RuleContext) -> Iterator[RuleFinding]:
    """An interface over stdio has a URL of another kind, or nothing, as its `url`; or its command has what a shell
    would carry out: `$(...)`, backticks, `|` or `;`.

    `url` is the command that a client runs. What is none cannot be run, and what a shell carries out lets whoever made
    the card run anything.
    """
    body = read_card(context)
    found = [(offer.path, offer.binding, offer.url) for offer in read_interfaces(body)]
    for name, kind in (("supportedInterfaces", "protocolBinding"), ("additionalInterfaces", "transport")):
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
            told = f"{url[:60]} is a URL" if url else "there is no command"
            yield RuleFinding(summary=f"the interface is stdio, and {told}", path=f"{context.root}{path}", value=url)
        elif danger:
            told = f"the command has `{danger}`, which a shell would carry out"
            yield RuleFinding(summary=told, path=f"{context.root}{path}", value=url)


def _check_exited(context: RuleContext) -> Iterator[RuleFinding]:
    if "exit" not in session_notes(context):
        yield RuleFinding(
            summary=f"the agent's stdin was closed {_EXIT_GRACE:.0f} s ago, and its process is still there"
        )


@rule(
    "A2A-STDIO-018",
    "The agent outlives its client",
    Severity.WARNING,
    section="stdio proposal, lifecycle",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
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
    """The client has closed the agent's stdin, and 5 s later the agent's process has not ended.

    A client ends the agent when it is done. Processes that stay hold memory, ports and files, one more with each run.
    """
    frame = context.frame
    if frame.kind is not FrameKind.CONTROL:
        return
    if frame.note == "exit":
        session_notes(context)["exit"] = True
    elif frame.note == "eof" and frame.direction is Direction.TO_AGENT:
        context.schedule_due(_EXIT_GRACE)
    yield from ()
