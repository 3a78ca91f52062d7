"""Rule about the text form of generations (ProtoJSON; manual/protocol.md "JSON encoding")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HTTP, STDIO, WEBHOOK, Dialects, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task

_MAX_GENERATION = 2**63 - 1
_TASK_PARAMS = {"id": "t1"}
_WRAPPERS = ("task", "statusUpdate", "artifactUpdate")


@rule(
    "A2A-GEN-020",
    "Malformed generation",
    Severity.ERROR,
    section="1.1 draft 3.2.7; ProtoJSON",
    dialects=Dialects.DRAFT_1_1,
    bindings=HTTP | STDIO | WEBHOOK,
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="3.5"), version="1.1"),
    clean=rpc("GetTask", _TASK_PARAMS, task("WORKING", generation="3"), version="1.1"),
)
def malformed(context: RuleContext) -> Iterator[RuleFinding]:
    """A generation (`generation`, `currentGeneration` or `ifGenerationMatch`) is not a string that
    holds a whole number from 0 to 2^63-1. Reported as information for a JSON number: parsers accept
    it, but it loses precision above 2^53.

    Peers that cannot read the value refuse the message, or take it for 0, which means that
    generations are not supported. The sender of the message (client or agent) must write it as a
    decimal string.
    """
    for path, value in _number_values(context):
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_GENERATION:
            told = f"{path.rpartition('.')[2]} is the JSON number {value}, it should be a string"
            yield RuleFinding(summary=told, path=path, value=str(value), severity=Severity.INFO)
        elif not (isinstance(value, str) and _is_generation(value)):
            told = (
                f"{path.rpartition('.')[2]} is {str(value)[:40]!r}, it must be a whole number from "
                f"0 to 2^63-1"
            )
            yield RuleFinding(summary=told, path=path, value=str(value))


def _is_generation(value: str) -> bool:
    return (
        value.isascii() and value.isdigit() and len(value) <= 19 and int(value) <= _MAX_GENERATION
    )


def _number_values(context: RuleContext) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each generation in a frame."""
    if b"eneration" not in context.frame.payload:
        if (
            context.has_flag(FrameFlag.ASKS)
            and context.binding is Binding.REST
            and (path := context.rest_match) is not None
        ):
            value = dict(path.query).get("currentGeneration")
            if value is not None:
                yield "currentGeneration", value
        return
    body = context.body
    if not isinstance(body, dict):
        return
    root = context.root
    yield from _present_members(body, root, "generation", "currentGeneration", "current_generation")
    for wrapper in _WRAPPERS:
        yield from _present_members(body.get(wrapper), f"{root}{wrapper}.", "generation")
    yield from _present_members(
        body.get("configuration"),
        f"{root}configuration.",
        "ifGenerationMatch",
        "if_generation_match",
    )


def _present_members(holder: Any, root: str, *names: str) -> Iterator[tuple[str, Any]]:
    for name in names if isinstance(holder, dict) else ():
        value = holder.get(name)
        if value is not None:
            yield f"{root}{name}", value
