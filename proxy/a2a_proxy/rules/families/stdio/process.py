"""The life of the agent's process, and the command that begins it (manual/protocol.md "Stdio")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.stdio_command import is_command, is_stdio
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import CARD, RPC, STDIO, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import Json, card, task
from a2a_proxy.rules.examples.pipe import COMMAND, ask, close_output, ends, leave, pause, pipe, tell
from a2a_proxy.rules.families.card.reading import card_of
from a2a_proxy.rules.families.stdio.reading import session
from a2a_proxy.rules.state.card_declarations import objects, offers, word

_GET = {"id": "t1"}
_GRACE = 5.0
"""Seconds."""
_SHELL = ("$(", "`", "|", ";")


@rule(
    "A2A-STDIO-016",
    "The card is not fetched first",
    Severity.INFO,
    section="stdio proposal, bootstrap",
    moment=HookPoint.HEADS,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task()), fetches=False),
    clean=pipe(ask("GetTask", _GET), tell(task())),
)
def no_card(see: RuleContext) -> Iterator[RuleFinding]:
    """The first call after the agent was spawned is not the one for the extended card, and no card of the agent has
    been seen.

    A card with a stdio interface may be a stub, with a name and a command: what the agent can do a client learns from
    the card it asks for.
    """
    exchange = see.exchange
    if exchange.stream == 1 and exchange.operation != "GetExtendedAgentCard" and see.declared is None:
        yield RuleFinding(summary=f"the first call is `{exchange.method[:60]}`, not the one for the agent's card")


def _offering(url: str) -> Json:
    kind = "https://example.com/bindings/stdio"
    entry = {"url": url, "protocolBinding": kind, "protocolVersion": "1.0"}
    return card(supportedInterfaces=[*card()["supportedInterfaces"], entry])


@rule(
    "A2A-STDIO-017",
    "The url of a stdio interface is no command",
    Severity.WARNING,
    section="stdio proposal, url",
    bindings=CARD | RPC,
    when=FrameFlag.CARD,
    draft=True,
    flagged=fetch_card(_offering("https://agent.example.com/")),
    clean=fetch_card(_offering(COMMAND)),
)
def no_command(see: RuleContext) -> Iterator[RuleFinding]:
    """An interface over stdio has a URL of another kind, or nothing, as its `url`; or its command has what a shell
    would carry out: `$(...)`, backticks, `|` or `;`.

    `url` is the command that a client runs. What is none cannot be run, and what a shell carries out lets whoever made
    the card run anything.
    """
    body = card_of(see)
    found = [(offer.path, offer.binding, offer.url) for offer in offers(body)]
    for name, kind in (("supportedInterfaces", "protocolBinding"), ("additionalInterfaces", "transport")):
        entries = objects(body.get(name))
        found += [(f"{name}[{at}].url", word(each, kind), "") for at, each in entries if not word(each, "url")]
    for path, binding, url in found:
        if not is_stdio(binding):
            continue
        danger = next((each for each in _SHELL if each in url), "")
        if not is_command(url):
            told = f"{url[:60]} is a URL" if url else "there is no command"
            yield RuleFinding(summary=f"the interface is stdio, and {told}", path=f"{see.root}{path}", value=url)
        elif danger:
            told = f"the command has `{danger}`, which a shell would carry out"
            yield RuleFinding(summary=told, path=f"{see.root}{path}", value=url)


def _alive(see: RuleContext) -> Iterator[RuleFinding]:
    if "exit" not in session(see):
        yield RuleFinding(summary=f"the agent's stdin was closed {_GRACE:.0f} s ago, and its process is still there")


@rule(
    "A2A-STDIO-018",
    "The agent outlives its client",
    Severity.WARNING,
    section="stdio proposal, lifecycle",
    moment=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    due=_alive,
    flagged=pipe(ask("GetTask", _GET), tell(task()), leave(), pause(6), close_output(), ends()),
    clean=pipe(ask("GetTask", _GET), tell(task()), leave(), pause(1), close_output(), ends()),
)
def outlives(see: RuleContext) -> Iterator[RuleFinding]:
    """The client has closed the agent's stdin, and 5 s later the agent's process has not ended.

    A client ends the agent when it is done. Processes that stay hold memory, ports and files, one more with each run.
    """
    frame = see.frame
    if frame.kind is not FrameKind.CONTROL:
        return
    if frame.note == "exit":
        session(see)["exit"] = True
    elif frame.note == "eof" and frame.direction is Direction.TO_AGENT:
        see.later(_GRACE)
    yield from ()
