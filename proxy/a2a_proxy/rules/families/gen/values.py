"""The text form of generations (ProtoJSON; manual/protocol.md "JSON encoding")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import HTTP, STDIO, WEBHOOK, Dialects, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task

_MAX = 2**63 - 1
_ID = {"id": "t1"}
_WRAPPERS = ("task", "statusUpdate", "artifactUpdate")


@rule(
    "A2A-GEN-020",
    "Malformed generation",
    Severity.ERROR,
    section="1.1 draft 3.2.7; ProtoJSON",
    lines=Dialects.DRAFT_1_1,
    bindings=HTTP | STDIO | WEBHOOK,
    moment=(HookPoint.REQUEST, HookPoint.ANSWER),
    when=FrameFlag.UNCLEAN,
    draft=True,
    flagged=rpc("GetTask", _ID, task("WORKING", generation="3.5"), version="1.1"),
    clean=rpc("GetTask", _ID, task("WORKING", generation="3"), version="1.1"),
)
def malformed(see: RuleContext) -> Iterator[RuleFinding]:
    """`generation`, `currentGeneration` or `ifGenerationMatch` is something else than a whole number from 0 to 2^63-1
    in a string. A JSON number is information: parsers take it, but beyond 2^53 it is not exact.

    Peers that cannot read it refuse the message or take the number for 0, which means not implemented.
    """
    for path, value in _values(see):
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX:
            told = f"{path.rpartition('.')[2]} is the number {value}, ProtoJSON writes it as a string"
            yield RuleFinding(summary=told, path=path, value=str(value), severity=Severity.INFO)
        elif not (isinstance(value, str) and _whole(value)):
            told = f"{path.rpartition('.')[2]} is {str(value)[:40]!r}, not a whole number from 0 to 2^63-1"
            yield RuleFinding(summary=told, path=path, value=str(value))


def _whole(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 19 and int(value) <= _MAX


def _values(see: RuleContext) -> Iterator[tuple[str, Any]]:
    """The numbers of a frame that are there, with their places."""
    if b"eneration" not in see.frame.payload:
        if see.is_(FrameFlag.ASKS) and see.binding is Binding.REST and (path := see.path) is not None:
            value = dict(path.query).get("currentGeneration")
            if value is not None:
                yield "currentGeneration", value
        return
    body = see.body
    if not isinstance(body, dict):
        return
    root = see.root
    yield from _of(body, root, "generation", "currentGeneration", "current_generation")
    for wrapper in _WRAPPERS:
        yield from _of(body.get(wrapper), f"{root}{wrapper}.", "generation")
    yield from _of(body.get("configuration"), f"{root}configuration.", "ifGenerationMatch", "if_generation_match")


def _of(holder: Any, root: str, *names: str) -> Iterator[tuple[str, Any]]:
    for name in names if isinstance(holder, dict) else ():
        value = holder.get(name)
        if value is not None:
            yield f"{root}{name}", value
