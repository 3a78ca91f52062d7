"""ListTasks (A2A 1.0 section 3.1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, REST, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import artifact, task
from a2a_proxy.rules.families.task.numbers import parse_integer

_DEFAULT_PAGE, _MAX_PAGE = 50, 100
_STATE_NAMES = frozenset(f"TASK_STATE_{state.name}" for state in TaskState if state)
"""Another word is no filter: A2A-HTTP-012 and A2A-VER-010 tell of it."""
_MAX_CHAINS = 100
"""Chains of pages that are followed for one agent."""


def _list_page(*tasks: dict[str, Any], token: str = "", size: int = 50, total: int | None = None) -> dict[str, Any]:
    count = len(tasks) if total is None else total
    return {"tasks": list(tasks), "nextPageToken": token, "pageSize": size, "totalSize": count}


_NEW_TASK, _OLD_TASK = task(id="t2", second=9), task(id="t1", second=4)


def _listed_tasks(context: RuleContext) -> list[dict[str, Any]]:
    listed = context.body.get("tasks") if isinstance(context.body, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _nested_string(value: Any, *names: str) -> str:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


@rule(
    "A2A-TASK-003",
    "Artifacts in a list that did not ask for them",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _list_page(task(artifacts=[artifact()]))),
    clean=rpc("ListTasks", {"includeArtifacts": True}, _list_page(task(artifacts=[artifact()]))),
)
def artifacts_unasked(context: RuleContext) -> Iterator[RuleFinding]:
    """`includeArtifacts` is false or absent and a task of the list has the member `artifacts`.

    Lists are asked for often and are meant to be small; artifacts can be megabytes.
    """
    if context.params.get("includeArtifacts") in (True, "true"):
        return
    for number, each in enumerate(_listed_tasks(context)):
        if "artifacts" in each:
            summary = f"task {_nested_string(each, 'id')} has artifacts, nobody asked for them"
            yield RuleFinding(summary=summary, path=f"{context.root}tasks[{number}].artifacts")


@rule(
    "A2A-TASK-004",
    "`nextPageToken` is missing",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    bindings=ENVELOPE | REST,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, {"tasks": [task()], "pageSize": 50, "totalSize": 1}),
    clean=rpc("ListTasks", {}, _list_page(task())),
)
def no_token(context: RuleContext) -> Iterator[RuleFinding]:
    """A list has no member `nextPageToken`; on the last page it is the empty string.

    Without it a client cannot tell the last page from an answer that was cut short.
    """
    if isinstance(context.body, dict) and "nextPageToken" not in context.body:
        yield RuleFinding(summary="there is no `nextPageToken`", path=f"{context.root}nextPageToken")


@rule(
    "A2A-TASK-005",
    "List is not sorted by time, newest first",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _list_page(_OLD_TASK, _NEW_TASK)),
    clean=rpc("ListTasks", {}, _list_page(_NEW_TASK, _OLD_TASK)),
)
def unsorted(context: RuleContext) -> Iterator[RuleFinding]:
    """The status of a task in a list is newer than that of the task before it.

    A client that reads the first page to see what is new sees something old.
    """
    before = ""
    for number, each in enumerate(_listed_tasks(context)):
        stamp = _nested_string(each, "status", "timestamp")
        # Only stamps of one form order as texts do.
        if stamp and before and len(stamp) == len(before) and stamp[-1] == before[-1] == "Z" and stamp > before:
            path = f"{context.root}tasks[{number}].status.timestamp"
            yield RuleFinding(summary=f"status of {stamp} after one of {before}", path=path, value=stamp)
        before = stamp or before


@rule(
    "A2A-TASK-006",
    "Page is larger than asked for",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"pageSize": 1}, _list_page(_NEW_TASK, _OLD_TASK, size=1)),
    clean=rpc("ListTasks", {"pageSize": 2}, _list_page(_NEW_TASK, _OLD_TASK, size=2)),
)
def page_too_large(context: RuleContext) -> Iterator[RuleFinding]:
    """A list has more tasks than `pageSize` (50 where it is absent), or a `pageSize` outside 1 to 100 was accepted.

    Clients set aside room for a page; paging is there to bound an answer.
    """
    asked = parse_integer(context.params.get("pageSize"))
    count = len(_listed_tasks(context))
    if asked is not None and asked != 0 and not 1 <= asked <= _MAX_PAGE:
        yield RuleFinding(summary=f"pageSize {asked} was accepted, it must be from 1 to {_MAX_PAGE}", value=str(asked))
    elif count > (asked or _DEFAULT_PAGE):
        summary = f"{count} tasks on a page of at most {asked or _DEFAULT_PAGE}"
        yield RuleFinding(summary=summary, path=f"{context.root}tasks", value=str(count))


@rule(
    "A2A-TASK-007",
    "Filter was not applied",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"status": "TASK_STATE_WORKING"}, _list_page(task("COMPLETED"))),
    clean=rpc("ListTasks", {"status": "TASK_STATE_COMPLETED"}, _list_page(task("COMPLETED"))),
)
def filter_ignored(rule_context: RuleContext) -> Iterator[RuleFinding]:
    """A task in a list has another context or state than the request asked for, or a status older than
    `statusTimestampAfter`.

    The client takes every task of the answer for one that it asked for, also those of other conversations.
    """
    params = rule_context.params
    context, state = _nested_string(params, "contextId"), _nested_string(params, "status")
    after = _nested_string(params, "statusTimestampAfter")
    for number, each in enumerate(_listed_tasks(rule_context)):
        path = f"{rule_context.root}tasks[{number}]"
        if context and _nested_string(each, "contextId") not in ("", context):
            summary = f"task of context {each['contextId']}, asked for was {context}"
            yield RuleFinding(summary=summary, path=f"{path}.contextId", value=_nested_string(each, "contextId"))
        if state in _STATE_NAMES and _nested_string(each, "status", "state") not in ("", state):
            found = _nested_string(each, "status", "state")
            yield RuleFinding(
                summary=f"task in {found}, asked for was {state}", path=f"{path}.status.state", value=found
            )
        stamp = _nested_string(each, "status", "timestamp")
        if after and stamp and after[-1] == stamp[-1] == "Z" and stamp[:19] < after[:19]:
            summary = f"status of {stamp}, asked for were those after {after}"
            yield RuleFinding(summary=summary, path=f"{path}.status.timestamp", value=stamp)


@rule(
    "A2A-TASK-010",
    "Paging loops or repeats tasks",
    Severity.WARNING,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"pageSize": 1}, _list_page(_NEW_TASK, token="p", size=1, total=2))
    + rpc("ListTasks", {"pageSize": 1, "pageToken": "p"}, _list_page(_OLD_TASK, token="p", size=1, total=2)),
    clean=rpc("ListTasks", {"pageSize": 1}, _list_page(_NEW_TASK, token="p", size=1, total=2))
    + rpc("ListTasks", {"pageSize": 1, "pageToken": "p"}, _list_page(_OLD_TASK, size=1, total=2)),
)
def paging_loops(context: RuleContext) -> Iterator[RuleFinding]:
    """A page gives as `nextPageToken` the token that led to it or to an earlier page of its chain, or shows a task that
    an earlier page of the chain has shown, in the same state.

    A client that reads all pages then never ends, or counts tasks twice.
    """
    chains: dict[str, dict[str, Any]] = context.agent.notes.setdefault("pages", {})
    token, following = _nested_string(context.params, "pageToken"), _nested_string(context.body, "nextPageToken")
    chain = chains.pop(token, None) if token else None
    chain = chain or {"tokens": [], "tasks": {}}
    for number, each in enumerate(_listed_tasks(context)):
        ident, state = _nested_string(each, "id"), _nested_string(each, "status", "state")
        if chain["tasks"].get(ident) == state:
            yield RuleFinding(
                summary=f"task {ident} was on an earlier page", path=f"{context.root}tasks[{number}].id", value=ident
            )
    if following and following in [*chain["tokens"], token]:
        summary = "`nextPageToken` leads to a page that was there before"
        yield RuleFinding(summary=summary, path=f"{context.root}nextPageToken", value=following)
        return
    if following and len(chain["tokens"]) < _MAX_CHAINS:
        tasks = {_nested_string(each, "id"): _nested_string(each, "status", "state") for each in _listed_tasks(context)}
        chains[following] = {"tokens": [*chain["tokens"], token], "tasks": {**chain["tasks"], **tasks}}
        if len(chains) > _MAX_CHAINS:
            del chains[next(iter(chains))]


@rule(
    "A2A-TASK-011",
    "`totalSize` or `pageSize` of a list is wrong",
    Severity.INFO,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _list_page(_NEW_TASK, _OLD_TASK, total=1)),
    clean=rpc("ListTasks", {}, _list_page(_NEW_TASK, _OLD_TASK)),
)
def sizes(context: RuleContext) -> Iterator[RuleFinding]:
    """`totalSize` is less than the number of tasks on the page, or `pageSize` is not the one that was asked for (50
    where none was).

    Progress bars and "page 3 of 7" are made of these numbers.
    """
    body = context.body
    if not isinstance(body, dict):
        return
    count, total, size = (
        len(_listed_tasks(context)),
        parse_integer(body.get("totalSize")),
        parse_integer(body.get("pageSize")),
    )
    if total is not None and total < count:
        yield RuleFinding(
            summary=f"totalSize {total} with {count} tasks", path=f"{context.root}totalSize", value=str(total)
        )
    asked = parse_integer(context.params.get("pageSize")) or _DEFAULT_PAGE
    # SDKs fill in what they found, not what was asked for.
    if size is not None and size not in (asked, count) and context.binding is not Binding.GRPC:
        yield RuleFinding(
            summary=f"pageSize {size}, asked for was {asked}", path=f"{context.root}pageSize", value=str(size)
        )
