"""ListTasks (A2A 1.0 section 3.1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import ENVELOPE, REST, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import artifact, task
from a2a_proxy.rules.families.task.numbers import integer

_DEFAULT_PAGE, _MAX_PAGE = 50, 100
_STATES = frozenset(f"TASK_STATE_{state.name}" for state in TaskState if state)
"""Another word is no filter: A2A-HTTP-012 and A2A-VER-010 tell of it."""
_MAX_CHAINS = 100
"""Chains of pages that are followed for one agent."""


def _page(*tasks: dict[str, Any], token: str = "", size: int = 50, total: int | None = None) -> dict[str, Any]:
    count = len(tasks) if total is None else total
    return {"tasks": list(tasks), "nextPageToken": token, "pageSize": size, "totalSize": count}


_NEW, _OLD = task(id="t2", second=9), task(id="t1", second=4)


def _tasks(see: RuleContext) -> list[dict[str, Any]]:
    listed = see.body.get("tasks") if isinstance(see.body, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _word(value: Any, *names: str) -> str:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


@rule(
    "A2A-TASK-003",
    "Artifacts in a list that did not ask for them",
    Severity.ERROR,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _page(task(artifacts=[artifact()]))),
    clean=rpc("ListTasks", {"includeArtifacts": True}, _page(task(artifacts=[artifact()]))),
)
def artifacts_unasked(see: RuleContext) -> Iterator[RuleFinding]:
    """`includeArtifacts` is false or absent and a task of the list has the member `artifacts`.

    Lists are asked for often and are meant to be small; artifacts can be megabytes.
    """
    if see.params.get("includeArtifacts") in (True, "true"):
        return
    for number, each in enumerate(_tasks(see)):
        if "artifacts" in each:
            summary = f"task {_word(each, 'id')} has artifacts, nobody asked for them"
            yield RuleFinding(summary=summary, path=f"{see.root}tasks[{number}].artifacts")


@rule(
    "A2A-TASK-004",
    "`nextPageToken` is missing",
    Severity.ERROR,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    bindings=ENVELOPE | REST,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, {"tasks": [task()], "pageSize": 50, "totalSize": 1}),
    clean=rpc("ListTasks", {}, _page(task())),
)
def no_token(see: RuleContext) -> Iterator[RuleFinding]:
    """A list has no member `nextPageToken`; on the last page it is the empty string.

    Without it a client cannot tell the last page from an answer that was cut short.
    """
    if isinstance(see.body, dict) and "nextPageToken" not in see.body:
        yield RuleFinding(summary="there is no `nextPageToken`", path=f"{see.root}nextPageToken")


@rule(
    "A2A-TASK-005",
    "List is not sorted by time, newest first",
    Severity.ERROR,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _page(_OLD, _NEW)),
    clean=rpc("ListTasks", {}, _page(_NEW, _OLD)),
)
def unsorted(see: RuleContext) -> Iterator[RuleFinding]:
    """The status of a task in a list is newer than that of the task before it.

    A client that reads the first page to see what is new sees something old.
    """
    before = ""
    for number, each in enumerate(_tasks(see)):
        stamp = _word(each, "status", "timestamp")
        # Only stamps of one form order as texts do.
        if stamp and before and len(stamp) == len(before) and stamp[-1] == before[-1] == "Z" and stamp > before:
            path = f"{see.root}tasks[{number}].status.timestamp"
            yield RuleFinding(summary=f"status of {stamp} after one of {before}", path=path, value=stamp)
        before = stamp or before


@rule(
    "A2A-TASK-006",
    "Page is larger than asked for",
    Severity.ERROR,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"pageSize": 1}, _page(_NEW, _OLD, size=1)),
    clean=rpc("ListTasks", {"pageSize": 2}, _page(_NEW, _OLD, size=2)),
)
def page_too_large(see: RuleContext) -> Iterator[RuleFinding]:
    """A list has more tasks than `pageSize` (50 where it is absent), or a `pageSize` outside 1 to 100 was accepted.

    Clients set aside room for a page; paging is there to bound an answer.
    """
    asked = integer(see.params.get("pageSize"))
    count = len(_tasks(see))
    if asked is not None and asked != 0 and not 1 <= asked <= _MAX_PAGE:
        yield RuleFinding(summary=f"pageSize {asked} was accepted, it must be from 1 to {_MAX_PAGE}", value=str(asked))
    elif count > (asked or _DEFAULT_PAGE):
        summary = f"{count} tasks on a page of at most {asked or _DEFAULT_PAGE}"
        yield RuleFinding(summary=summary, path=f"{see.root}tasks", value=str(count))


@rule(
    "A2A-TASK-007",
    "Filter was not applied",
    Severity.ERROR,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"status": "TASK_STATE_WORKING"}, _page(task("COMPLETED"))),
    clean=rpc("ListTasks", {"status": "TASK_STATE_COMPLETED"}, _page(task("COMPLETED"))),
)
def filter_ignored(see: RuleContext) -> Iterator[RuleFinding]:
    """A task in a list has another context or state than the request asked for, or a status older than
    `statusTimestampAfter`.

    The client takes every task of the answer for one that it asked for, also those of other conversations.
    """
    params = see.params
    context, state = _word(params, "contextId"), _word(params, "status")
    after = _word(params, "statusTimestampAfter")
    for number, each in enumerate(_tasks(see)):
        path = f"{see.root}tasks[{number}]"
        if context and _word(each, "contextId") not in ("", context):
            summary = f"task of context {each['contextId']}, asked for was {context}"
            yield RuleFinding(summary=summary, path=f"{path}.contextId", value=_word(each, "contextId"))
        if state in _STATES and _word(each, "status", "state") not in ("", state):
            found = _word(each, "status", "state")
            yield RuleFinding(
                summary=f"task in {found}, asked for was {state}", path=f"{path}.status.state", value=found
            )
        stamp = _word(each, "status", "timestamp")
        if after and stamp and after[-1] == stamp[-1] == "Z" and stamp[:19] < after[:19]:
            summary = f"status of {stamp}, asked for were those after {after}"
            yield RuleFinding(summary=summary, path=f"{path}.status.timestamp", value=stamp)


@rule(
    "A2A-TASK-010",
    "Paging loops or repeats tasks",
    Severity.WARNING,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.LIVE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"pageSize": 1}, _page(_NEW, token="p", size=1, total=2))
    + rpc("ListTasks", {"pageSize": 1, "pageToken": "p"}, _page(_OLD, token="p", size=1, total=2)),
    clean=rpc("ListTasks", {"pageSize": 1}, _page(_NEW, token="p", size=1, total=2))
    + rpc("ListTasks", {"pageSize": 1, "pageToken": "p"}, _page(_OLD, size=1, total=2)),
)
def paging_loops(see: RuleContext) -> Iterator[RuleFinding]:
    """A page gives as `nextPageToken` the token that led to it or to an earlier page of its chain, or shows a task that
    an earlier page of the chain has shown, in the same state.

    A client that reads all pages then never ends, or counts tasks twice.
    """
    chains: dict[str, dict[str, Any]] = see.agent.notes.setdefault("pages", {})
    token, following = _word(see.params, "pageToken"), _word(see.body, "nextPageToken")
    chain = chains.pop(token, None) if token else None
    chain = chain or {"tokens": [], "tasks": {}}
    for number, each in enumerate(_tasks(see)):
        ident, state = _word(each, "id"), _word(each, "status", "state")
        if chain["tasks"].get(ident) == state:
            yield RuleFinding(
                summary=f"task {ident} was on an earlier page", path=f"{see.root}tasks[{number}].id", value=ident
            )
    if following and following in [*chain["tokens"], token]:
        summary = "`nextPageToken` leads to a page that was there before"
        yield RuleFinding(summary=summary, path=f"{see.root}nextPageToken", value=following)
        return
    if following and len(chain["tokens"]) < _MAX_CHAINS:
        tasks = {_word(each, "id"): _word(each, "status", "state") for each in _tasks(see)}
        chains[following] = {"tokens": [*chain["tokens"], token], "tasks": {**chain["tasks"], **tasks}}
        if len(chains) > _MAX_CHAINS:
            del chains[next(iter(chains))]


@rule(
    "A2A-TASK-011",
    "`totalSize` or `pageSize` of a list is wrong",
    Severity.INFO,
    section="1.0 3.1.4",
    lines=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _page(_NEW, _OLD, total=1)),
    clean=rpc("ListTasks", {}, _page(_NEW, _OLD)),
)
def sizes(see: RuleContext) -> Iterator[RuleFinding]:
    """`totalSize` is less than the number of tasks on the page, or `pageSize` is not the one that was asked for (50
    where none was).

    Progress bars and "page 3 of 7" are made of these numbers.
    """
    body = see.body
    if not isinstance(body, dict):
        return
    count, total, size = len(_tasks(see)), integer(body.get("totalSize")), integer(body.get("pageSize"))
    if total is not None and total < count:
        yield RuleFinding(
            summary=f"totalSize {total} with {count} tasks", path=f"{see.root}totalSize", value=str(total)
        )
    asked = integer(see.params.get("pageSize")) or _DEFAULT_PAGE
    # SDKs fill in what they found, not what was asked for.
    if size is not None and size not in (asked, count) and see.binding is not Binding.GRPC:
        yield RuleFinding(
            summary=f"pageSize {size}, asked for was {asked}", path=f"{see.root}pageSize", value=str(size)
        )
