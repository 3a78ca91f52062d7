"""Rules about query parameters of HTTP+JSON (A2A 1.0 section 11.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import REST, Dialects, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rest
from a2a_proxy.rules.examples.objects import task

_SNAKE_CASE = {
    "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): name
    for name in (
        "contextId",
        "pageSize",
        "pageToken",
        "historyLength",
        "timelineLength",
        "statusTimestampAfter",
        "includeArtifacts",
        "currentGeneration",
        "taskId",
    )
}
_LIST_PARAMETERS = {"tasks": [task()], "nextPageToken": "", "pageSize": 5, "totalSize": 1}


@rule(
    "A2A-HTTP-011",
    "Query parameter is not camelCase",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 11.5",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=REST,
    flagged=rest("GET", "/tasks?page_size=5", result=_LIST_PARAMETERS),
    clean=rest("GET", "/tasks?pageSize=5", result=_LIST_PARAMETERS),
)
def snake_case(context: RuleContext) -> Iterator[RuleFinding]:
    """The name of a query parameter is written in snake case, as in the protobuf definition
    (`page_size`), instead of camel case (`pageSize`).

    Agents ignore unknown parameters: the filter or limit has no effect, without any error. The
    client must use the JSON names.
    """
    for name, _ in _query_pairs(context):
        if name in _SNAKE_CASE:
            told = f"the query parameter is `{name}`, it must be `{_SNAKE_CASE[name]}`"
            yield RuleFinding(summary=told, value=name, seq=_request_seq(context))


def _query_pairs(context: RuleContext) -> tuple[tuple[str, str], ...]:
    path = context.rest_match if "?" in context.exchange.target else None
    return path.query if path is not None else ()


def _request_seq(context: RuleContext) -> int:
    return context.request.seq if context.request is not None else -1


_STATE_NAMES = frozenset(f"TASK_STATE_{state.name}" for state in TaskState) | {
    "TASK_STATE_UNSPECIFIED"
}
_INTEGER_TEXT = re.compile(r"-?\d{1,19}")
_NESTED_PARAMETERS = re.compile(r"\w+\[\w+\]|metadata\.\w+")
"""Parameter name that addresses a member of an object."""
_TIME_PARAMETERS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]00:00)")

_PARAMETER_TYPES: dict[str, tuple[Callable[[str], object], str]] = {
    "includeArtifacts": (lambda value: value in ("true", "false"), "`true` or `false`"),
    "status": (lambda value: value in _STATE_NAMES, "the name of a state (`TASK_STATE_WORKING`)"),
    "pageSize": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "historyLength": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "timelineLength": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "statusTimestampAfter": (
        _TIME_PARAMETERS.fullmatch,
        "an ISO 8601 time in UTC (`2026-01-01T00:00:00Z`)",
    ),
}
"""Parameter name to check and description. `currentGeneration` is judged by A2A-GEN-020."""


@rule(
    "A2A-HTTP-012",
    "Query value of the wrong type",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 11.5",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=REST,
    flagged=rest("GET", "/tasks?includeArtifacts=1", result=_LIST_PARAMETERS | {"pageSize": 50}),
    clean=rest(
        "GET",
        "/tasks?includeArtifacts=true&status=TASK_STATE_COMPLETED&statusTimestampAfter=2026-01-01T00%3A00%3A00.5Z",
        result=_LIST_PARAMETERS | {"pageSize": 50},
    ),
)
def badly_typed(context: RuleContext) -> Iterator[RuleFinding]:
    """A query value is not in the form of its type: a boolean is `true` or `false`, a state is its
    name, a number is decimal, a time is ISO 8601 in UTC. Also reported: a parameter that is a JSON
    object or addresses a member of one. Empty values count as absent.

    Agents answer 400, or read another value than the client means. The client must correct the
    value.
    """
    for name, value in _query_pairs(context):
        fits, words = _PARAMETER_TYPES.get(name, (None, ""))
        if fits is not None and value and not fits(value) and not is_label(value.encode()):
            told = f"`{name}` is `{value[:60]}`, it should be {words}"
            yield RuleFinding(summary=told, value=value, seq=_request_seq(context))
        elif value.startswith("{") or _NESTED_PARAMETERS.fullmatch(name):
            told = f"the query parameter `{name[:60]}` is an object, parameters must be flat"
            yield RuleFinding(summary=told, value=value, seq=_request_seq(context))
