"""The receivers of push notifications, known by task and URL (A2A 1.0 sections 3.1.7 to 3.1.10,
3.2.2).

A configuration becomes known from Create, Get and List, and from messages that carry one: its id is
then unknown, and its task is the one that the first answer names. Tasks are not distinguished by
agent here, because one agent may be reached at several addresses that no card connects.
"""

from functools import partial
from typing import TypedDict
from urllib.parse import urlsplit

from a2a_proxy.model.values import Actor
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, WEBHOOK, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import rule
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.card_declarations import Json, object_member, string_member
from a2a_proxy.rules.state.push_configs import (
    DELETE_CONFIG,
    GET_CONFIG,
    LIST_CONFIGS,
    answered_configs,
    client_identity,
    config_reference,
    requested_config,
)
from a2a_proxy.rules.state.session_state import SessionState
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

receiver_rule = partial(
    rule,
    actor=Actor.AGENT,
    scope=EvidenceScope.LIVE,
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    bindings=RPC | WEBHOOK,
    operations=SENDING_OPERATIONS | {CREATE_CONFIG, GET_CONFIG, LIST_CONFIGS, DELETE_CONFIG, ""},
    trigger_flags=FrameFlag.FIRST | FrameFlag.ASKS,
    required_flags=FrameFlag.PUSHES | FrameFlag.PUSH | FrameFlag.OTHER | FrameFlag.ODD_HEAD,
)
"""Decorator of rules that compare deliveries with the configurations of their task: they run on
frames that may set or show a configuration, and on deliveries, which have no operation. Most
messages have none of the flags.
"""

_RECEIVERS_NOTE, _DROPPED_NOTE, _LEARNED = (
    "push receivers",
    "push receivers dropped",
    "push receivers learned",
)
_MAX_TASKS, _MAX_RECEIVERS = 2000, 50
"""Maximum number of remembered tasks, and of configurations of one task."""
_ANY_URL = "*"
"""URL of a configuration whose request is not known completely."""


class PushReceiver(TypedDict):
    """One push configuration, with what its deliveries must contain."""

    url: str
    """The URL in the form of `url_key`."""
    id: str
    """Empty if it is unknown."""
    by: str
    """Identity of the client that set it."""
    token: str
    schemes: list[str]
    """Authentication schemes in lower case, one of which the agent must use."""
    credentials: str
    is_v1: bool
    """Whether it was set in a dialect that defines the body of deliveries."""
    is_active: bool
    """Whether the agent accepted it and nothing suggests that it was deleted or replaced."""
    since: int
    """Start of the request that set it, ns."""
    until: int
    """Time at which it was deleted, ns; 0 if it was not."""
    exchange: int


def url_key(url: str) -> str:
    """Return a URL in the form in which configurations and deliveries are compared: host, port
    unless it is a default port, path and query; empty if it has no host.
    """
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    place = f"{host.rstrip('.')}:{port}" if port not in (None, 80, 443) else host.rstrip(".")
    return f"{place}{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def receivers_of(session: SessionState, task_id: str) -> list[PushReceiver]:
    """Return the configurations of a task, including deleted ones."""
    found: list[PushReceiver] = session.notes.get(_RECEIVERS_NOTE, {}).get(task_id, [])
    return found


def active_receivers(session: SessionState, task_id: str, url: str) -> list[PushReceiver]:
    """Return the active configurations of a task with this URL; none if one with this URL may or
    may not be active.

    Without a task id those of all tasks are returned.
    """
    tasks: dict[str, list[PushReceiver]] = session.notes.get(_RECEIVERS_NOTE, {})
    known = (
        tasks.get(task_id, []) if task_id else [each for found in tasks.values() for each in found]
    )
    found = [each for each in known if each["url"] in (url, _ANY_URL) and not each["until"]]
    return found if all(each["is_active"] for each in found) else []


def is_same_receiver(receiver: PushReceiver, url: str) -> bool:
    """Whether deliveries for the receiver may arrive at `url` as the proxy sees it: a gateway in
    front of the proxy may have replaced the host, and a redaction label may stand for different
    text.
    """
    known = receiver["url"]
    return (
        known in (url, _ANY_URL)
        or "redacted-" in known
        or "redacted-" in url
        or _path_of(known) == _path_of(url) != "/"
    )


def _path_of(url: str) -> str:
    return f"/{url.partition('/')[2]}"


def has_dropped_receivers(session: SessionState, since: int) -> bool:
    """Whether configurations that were set after `since` (ns) may have been dropped."""
    return bool(session.notes.get(_DROPPED_NOTE, 0) >= since)


def learn_receivers(context: RuleContext) -> None:
    """Learn from the request or the first answer of an operation on configurations, or of a message
    with one."""
    if context.cache.get(_LEARNED):
        return
    context.cache[_LEARNED] = True
    operation = context.operation
    is_request = context.has_flag(FrameFlag.ASKS)
    if operation == CREATE_CONFIG or operation in SENDING_OPERATIONS:
        _learn_set_config(context, is_accepted=not is_request and context.is_success)
    elif is_request or not context.is_success:
        return
    elif operation == DELETE_CONFIG:
        _learn_deletion(context)
    elif operation in (GET_CONFIG, LIST_CONFIGS):
        _learn_shown_configs(context)


def _learn_set_config(context: RuleContext, *, is_accepted: bool) -> None:
    config, request = requested_config(context), context.request
    created = context.operation == CREATE_CONFIG
    task_id = (
        (string_member(config, "taskId") if config else "") if created else context.frame.task_id
    )
    task_id = task_id or (request.task_id if request is not None else "")
    if not task_id or request is None:
        return
    if config is None:
        if request.truncated:
            _add_receiver(context, task_id, _make_receiver(context, {}, _ANY_URL, is_active=False))
        return
    key = url_key(string_member(config, "url"))
    made = _make_receiver(context, config, key, is_active=is_accepted)
    if created and is_accepted:
        made["id"] = next(
            (string_member(each, "id") for each in answered_configs(context)), made["id"]
        )
    if key:
        _add_receiver(context, task_id, made)


def _make_receiver(
    context: RuleContext, config: Json, url: str, *, is_active: bool
) -> PushReceiver:
    authentication = object_member(config, "authentication")
    named = authentication.get("schemes")
    schemes = [authentication.get("scheme"), *(named if isinstance(named, list) else ())]
    return PushReceiver(
        url=url,
        id=string_member(config, "id"),
        by=client_identity(context),
        token=string_member(config, "token"),
        schemes=list(
            dict.fromkeys(each.lower() for each in schemes if isinstance(each, str) and each)
        ),
        credentials=string_member(authentication, "credentials"),
        is_v1=context.is_v1,
        is_active=is_active,
        since=context.record.started,
        until=0,
        exchange=context.record.id,
    )


def _add_receiver(context: RuleContext, task_id: str, made: PushReceiver) -> None:
    """Add a configuration, unless an equal one is active; one that it may replace is no longer
    known to be active."""
    entries = [
        each
        for each in receivers_of(context.session, task_id)
        if each["exchange"] != made["exchange"]
    ]
    same = [
        each
        for each in entries
        if each["by"] == made["by"]
        and not each["until"]
        and (each["id"] == made["id"] or not each["id"] or not made["id"])
    ]
    if not any(each["is_active"] and _contents(each) == _contents(made) for each in same):
        for each in same if made["is_active"] else ():
            each["is_active"] = False
        entries.append(made)
    if len(entries) > _MAX_RECEIVERS:
        entries = [_without_url(entries[0]), *entries[2:]]
    tasks: dict[str, list[PushReceiver]] = context.session.notes.setdefault(_RECEIVERS_NOTE, {})
    tasks.pop(task_id, None)
    tasks[task_id] = entries
    if len(tasks) > _MAX_TASKS:
        del tasks[next(iter(tasks))]
        context.session.notes[_DROPPED_NOTE] = context.at


def _contents(receiver: PushReceiver) -> tuple[str, str, list[str], str, bool]:
    return (
        receiver["url"],
        receiver["token"],
        receiver["schemes"],
        receiver["credentials"],
        receiver["is_v1"],
    )


def _without_url(receiver: PushReceiver) -> PushReceiver:
    made = receiver.copy()
    made["url"], made["is_active"], made["until"] = _ANY_URL, False, 0
    return made


def _learn_deletion(context: RuleContext) -> None:
    task_id, ident = config_reference(context)
    by = client_identity(context)
    for each in receivers_of(context.session, task_id):
        if each["id"] == ident and each["by"] == by:
            each["until"], each["is_active"] = each["until"] or context.at, False
        elif each["id"] in (
            ident,
            "",
        ):  # another client's, or one that came with a message and may have this id
            each["is_active"] = False


def _learn_shown_configs(context: RuleContext) -> None:
    """Learn the ids of configurations that came with a message, and configurations that were set
    elsewhere."""
    asked, _ = config_reference(context)
    by = client_identity(context)
    for config in answered_configs(context):
        task_id, key = (
            string_member(config, "taskId") or asked,
            url_key(string_member(config, "url")),
        )
        if not key or not task_id:
            continue
        ident = string_member(config, "id")
        same = [each for each in receivers_of(context.session, task_id) if each["url"] == key]
        unnamed = [each for each in same if not each["id"] and each["by"] == by]
        if any(each["id"] == ident and not each["until"] for each in same):
            continue
        if len(unnamed) == 1:
            unnamed[0]["id"] = ident
        else:
            _add_receiver(context, task_id, _make_receiver(context, config, key, is_active=False))
