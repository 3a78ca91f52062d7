"""Rules about ListTasks (A2A 1.0 section 3.1.4)."""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from zlib import crc32

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, REST, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import artifact, send, snapshot, task
from a2a_proxy.rules.facts.compared_values import time_before
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.facts.naming import are_different
from a2a_proxy.rules.families.task.numbers import parse_integer
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import MAX_STREAM_LAG, SECOND_NS
from a2a_proxy.rules.state.task_owners import owner_of, scope_of, scope_of_call

_DEFAULT_PAGE, _MAX_PAGE = 50, 100
_STATE_NAMES = frozenset(f"TASK_STATE_{state.name}" for state in TaskState if state)
"""State names that are valid as a filter. A2A-HTTP-012 and A2A-VER-010 report other words."""
_CHAIN = "tasks of earlier pages"
_MAX_KNOWN = 200
"""Number of tasks, the latest used, that are looked for in a list."""
_MAX_CHAINS, _MAX_CHAIN_TASKS = 100, 10_000
"""Number of chains of pages followed for one agent, and of tasks of one chain."""
_PAGE_PARAMS = frozenset({"pageToken", "pageSize", "historyLength", "includeArtifacts"})
"""Parameters of a list that do not select tasks."""
_LIST_PARAMS = _PAGE_PARAMS | {"contextId", "status", "tenant"}
"""Parameters with which it is known which tasks a list selects."""


def _list_page(
    *tasks: dict[str, Any], token: str = "", size: int = 50, total: int | None = None
) -> dict[str, Any]:
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
    "Artifacts in a list without `includeArtifacts`",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _list_page(task(artifacts=[artifact()]))),
    clean=rpc("ListTasks", {"includeArtifacts": True}, _list_page(task(artifacts=[artifact()]))),
)
def artifacts_unasked(context: RuleContext) -> Iterator[RuleFinding]:
    """`includeArtifacts` of the request is false or absent, but a task of the list has the member
    `artifacts`.

    Lists are requested often and should be small; artifacts can be megabytes. The agent must omit
    them.
    """
    if context.params.get("includeArtifacts") in (True, "true"):
        return
    for number, each in enumerate(_listed_tasks(context)):
        if "artifacts" in each:
            summary = (
                f"task {_nested_string(each, 'id')} has artifacts, but the request did not set "
                f"`includeArtifacts`"
            )
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
    """The answer to ListTasks has no member `nextPageToken`; on the last page it must be the empty
    string.

    Without it, a client cannot distinguish the last page from a truncated answer. The agent must
    always send it.
    """
    if isinstance(context.body, dict) and "nextPageToken" not in context.body:
        yield RuleFinding(
            summary="the list has no `nextPageToken`", path=f"{context.root}nextPageToken"
        )


@rule(
    "A2A-TASK-005",
    "Task list is not sorted by time, newest first",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {}, _list_page(_OLD_TASK, _NEW_TASK)),
    clean=rpc("ListTasks", {}, _list_page(_NEW_TASK, _OLD_TASK)),
)
def unsorted(context: RuleContext) -> Iterator[RuleFinding]:
    """The status of a task in a list is newer than the status of the task before it.

    A client that reads only the first page to see news sees old tasks. The agent must sort the list
    by status timestamp, newest first.
    """
    before = ""
    for number, each in enumerate(_listed_tasks(context)):
        stamp = _nested_string(each, "status", "timestamp")
        if time_before(before, stamp):
            path = f"{context.root}tasks[{number}].status.timestamp"
            yield RuleFinding(
                summary=f"a status of {stamp} follows an older one of {before}",
                path=path,
                value=stamp,
            )
        before = stamp or before


@rule(
    "A2A-TASK-006",
    "Page is larger than requested",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"pageSize": 1}, _list_page(_NEW_TASK, _OLD_TASK, size=1)),
    clean=rpc("ListTasks", {"pageSize": 2}, _list_page(_NEW_TASK, _OLD_TASK, size=2)),
)
def page_too_large(context: RuleContext) -> Iterator[RuleFinding]:
    """A list has more tasks than `pageSize` of the request (50 if absent), or the agent accepted a
    `pageSize` outside 1 to 100.

    Paging limits the size of an answer, and clients reserve space for one page. The agent must
    return at most `pageSize` tasks, and refuse a size outside the range.
    """
    asked = parse_integer(context.params.get("pageSize"))
    count = len(_listed_tasks(context))
    if asked is not None and asked != 0 and not 1 <= asked <= _MAX_PAGE:
        yield RuleFinding(
            summary=f"the agent accepted pageSize {asked}; it must be from 1 to {_MAX_PAGE}",
            value=str(asked),
        )
    elif count > (asked or _DEFAULT_PAGE):
        summary = f"{count} tasks on a page that may have at most {asked or _DEFAULT_PAGE}"
        yield RuleFinding(summary=summary, path=f"{context.root}tasks", value=str(count))


@rule(
    "A2A-TASK-007",
    "Filter of ListTasks was not applied",
    Severity.ERROR,
    section="1.0 3.1.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("ListTasks", {"status": "TASK_STATE_WORKING"}, _list_page(task("COMPLETED"))),
    clean=rpc("ListTasks", {"status": "TASK_STATE_COMPLETED"}, _list_page(task("COMPLETED"))),
)
def filter_ignored(rule_context: RuleContext) -> Iterator[RuleFinding]:
    """A task in a list has another context or state than the request filters for, or a status older
    than `statusTimestampAfter`.

    The client treats every task of the answer as a match, including tasks of other conversations.
    The agent must apply all filters of the request.
    """
    params = rule_context.params
    context, state = _nested_string(params, "contextId"), _nested_string(params, "status")
    after = _nested_string(params, "statusTimestampAfter")
    for number, each in enumerate(_listed_tasks(rule_context)):
        path = f"{rule_context.root}tasks[{number}]"
        if context and _nested_string(each, "contextId") not in ("", context):
            summary = f"task of context {each['contextId']}, but the request filters for {context}"
            yield RuleFinding(
                summary=summary, path=f"{path}.contextId", value=_nested_string(each, "contextId")
            )
        if state in _STATE_NAMES and _nested_string(each, "status", "state") not in ("", state):
            found = _nested_string(each, "status", "state")
            yield RuleFinding(
                summary=f"task in {found}, but the request filters for {state}",
                path=f"{path}.status.state",
                value=found,
            )
        stamp = _nested_string(each, "status", "timestamp")
        if time_before(stamp, after) >= SECOND_NS:
            summary = f"status of {stamp}, but the request filters for those after {after}"
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
    + rpc(
        "ListTasks",
        {"pageSize": 1, "pageToken": "p"},
        _list_page(_OLD_TASK, token="p", size=1, total=2),
    ),
    clean=rpc("ListTasks", {"pageSize": 1}, _list_page(_NEW_TASK, token="p", size=1, total=2))
    + rpc("ListTasks", {"pageSize": 1, "pageToken": "p"}, _list_page(_OLD_TASK, size=1, total=2)),
)
def paging_loops(context: RuleContext) -> Iterator[RuleFinding]:
    """A page returns as `nextPageToken` the token that led to it or to an earlier page of its
    chain, or contains a task that an earlier page of the chain contained in the same state, or
    contains a task twice.

    A client that reads all pages never ends, or counts tasks twice. The agent must return a new
    token for each page and each task on one page only.
    """
    chains: dict[str, dict[str, Any]] = context.agent.notes.setdefault("pages", {})
    token, following = (
        _nested_string(context.params, "pageToken"),
        _nested_string(context.body, "nextPageToken"),
    )
    scope = _chain_scope(context) if token or following else ""
    chain = chains.pop(f"{scope} {token}", None) if token else None
    if chain is not None or not token:
        context.cache[_CHAIN] = chain["tasks"] if chain is not None else {}
    chain = chain or {"tokens": [], "tasks": {}}
    here: set[str] = set()
    for number, each in enumerate(_listed_tasks(context)):
        ident, state = _nested_string(each, "id"), _nested_string(each, "status", "state")
        place = "on an earlier page" if chain["tasks"].get(ident) == state else ""
        if place := place or ("on this page" if ident and ident in here else ""):
            yield RuleFinding(
                summary=f"task {ident} was already {place}",
                path=f"{context.root}tasks[{number}].id",
                value=ident,
            )
        here.add(ident)
    if following and following in [*chain["tokens"], token]:
        summary = "`nextPageToken` leads back to a page that was already returned"
        yield RuleFinding(summary=summary, path=f"{context.root}nextPageToken", value=following)
        return
    is_short = len(chain["tokens"]) < _MAX_CHAINS and len(chain["tasks"]) < _MAX_CHAIN_TASKS
    if following and is_short:
        tasks = {
            _nested_string(each, "id"): _nested_string(each, "status", "state")
            for each in _listed_tasks(context)
        }
        chains[f"{scope} {following}"] = {
            "tokens": [*chain["tokens"], token],
            "tasks": {**chain["tasks"], **tasks},
        }
        if len(chains) > _MAX_CHAINS:
            del chains[next(iter(chains))]


def _chain_scope(context: RuleContext) -> str:
    """Return a digest of the caller and the filters: agents may use one token for several lists."""
    params = context.params
    filters = sorted((name, str(params[name])) for name in params.keys() - _PAGE_PARAMS)
    caller = (principal_digest(context.exchange), scope_of_call(context))
    return f"{crc32(repr((filters, caller)).encode(errors='replace')):08x}"


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
    """`totalSize` is less than the number of tasks on the page, or on all pages until it; or it is
    more than a list has that is complete with its first page. Or `pageSize` of the answer differs
    from the one in the request (50 if absent).

    Clients compute progress bars and "page 3 of 7" from these numbers. The agent must send correct
    numbers.
    """
    body = context.body
    if not isinstance(body, dict):
        return
    count, total, size = (
        len(_listed_tasks(context)),
        parse_integer(body.get("totalSize")),
        parse_integer(body.get("pageSize")),
    )
    earlier: dict[str, str] = context.cache.get(_CHAIN, {})
    every = len(earlier.keys() | {_nested_string(each, "id") for each in _listed_tasks(context)})
    told = ""
    if total is not None and total < count:
        told = f"the page has {count} tasks"
    elif total is not None and total < every:
        told = f"the pages until this one have {every} tasks"
    elif total is not None and total > count and _is_whole_list(context):
        told = f"the list has {count} tasks, and no page follows"
    if told:
        yield RuleFinding(
            summary=f"totalSize is {total}, but {told}",
            path=f"{context.root}totalSize",
            value=str(total),
        )
    asked = parse_integer(context.params.get("pageSize")) or _DEFAULT_PAGE
    # SDKs fill in the number of tasks found, not the requested size.
    if size is not None and size not in (asked, count) and context.binding is not Binding.GRPC:
        yield RuleFinding(
            summary=f"pageSize of the answer is {size}, but the request has {asked}",
            path=f"{context.root}pageSize",
            value=str(size),
        )


def _is_whole_list(context: RuleContext) -> bool:
    """Whether the answer is the first and last page of a list."""
    body = context.body if isinstance(context.body, dict) else {}
    return not (_nested_string(context.params, "pageToken") or body.get("nextPageToken"))


@rule(
    "A2A-TASK-014",
    "List contradicts what the agent has shown",
    Severity.WARNING,
    section="1.0 3.1.4, 3.4.2",
    dialects=Dialects.V1,
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.LIST,
    flagged=rpc("SendMessage", send(), snapshot("COMPLETED")) + rpc("ListTasks", {}, _list_page()),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("ListTasks", {}, _list_page(task())),
)
def contradicts_known(context: RuleContext) -> Iterator[RuleFinding]:
    """A list without further pages lacks a task that the agent has created before for the same
    caller (credentials, tenant, cookies), and that the filters select; low confidence if the task
    has ended, because the agent may have dropped it since, or changed in the last five seconds. Not
    judged for a filter by time, for a filter by state unless the task ended in it, and for
    parameters that A2A does not define. Or a list shows a task in another context than before,
    which is an error.

    A client that looks for its tasks with ListTasks, for example after a restart, does not find
    this one, or finds it in another conversation. The agent must list all tasks that the caller may
    read; check whether several instances of it share one task store.
    """
    agent, session, params = context.record.agent, context.session, context.params
    scope = scope_of_call(context)
    listed = {_nested_string(each, "id"): each for each in _listed_tasks(context)}
    for number, (ident, each) in enumerate(listed.items()):
        known = session.task_record(agent, ident)
        inner = _nested_string(each, "contextId")
        if known is None or (known.created_by and scope_of(known) != scope):
            continue  # a task of another tenant
        if are_different(known.context_id, inner):
            yield RuleFinding(
                summary=f"task {ident} was in context {known.context_id}, the list has {inner}",
                path=f"{context.root}tasks[{number}].contextId",
                value=inner,
                severity=Severity.ERROR,
            )
    is_narrowed = any(params[name] for name in params.keys() - _LIST_PARAMS)
    if is_narrowed or not _is_readable_list(context) or not _is_whole_list(context):
        return
    if len(listed) >= (parse_integer(params.get("pageSize")) or _DEFAULT_PAGE):
        return
    owner = principal_digest(context.exchange)
    lacking: list[TaskRecord] = []
    for known in islice(reversed(session.tasks.values()), _MAX_KNOWN):
        if known.agent != agent or not known.created_by or known.last >= context.record.started:
            continue
        if known.task_id in listed or owner_of(known) != owner or scope_of(known) != scope:
            continue
        if _is_selected(known, params):
            lacking.append(known)
    for known in lacking[:1]:
        more = f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""
        yield RuleFinding(
            summary=f"the list lacks task {known.task_id}{more}, which the agent created before",
            path=f"{context.root}tasks",
            value=known.task_id,
            is_sure=not known.terminal and context.record.started - known.last > MAX_STREAM_LAG,
        )


def _is_readable_list(context: RuleContext) -> bool:
    """Whether the answer is a list, and known completely."""
    body = context.body if isinstance(context.body, dict) else {}
    is_list = isinstance(body.get("tasks"), list) or context.binding is Binding.GRPC
    return is_list and not context.frame.truncated


def _is_selected(known: TaskRecord, params: dict[str, Any]) -> bool:
    """Whether the filters of the request select the task for certain."""
    context_id, state = _nested_string(params, "contextId"), _nested_string(params, "status")
    if context_id and context_id != known.context_id:
        return False
    ended = f"TASK_STATE_{TaskState(known.state).name}" if known.terminal else ""
    return not params.get("status") or state == ended
