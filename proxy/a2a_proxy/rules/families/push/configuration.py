"""Rules about setting push configurations (A2A 1.0 sections 3.1.7, 13.2)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Severity
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc, rpc_error
from a2a_proxy.rules.examples.objects import card, send, snapshot
from a2a_proxy.rules.facts.hosts import HostReach, host_of, host_reach, scheme_of
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.card_declarations import string_member
from a2a_proxy.rules.state.push_configs import (
    DELETE_CONFIG,
    GET_CONFIG,
    LIST_CONFIGS,
    answered_configs,
    requested_config,
    secret_members,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_WEBHOOK = "https://client.example.com/hook"
_SET_CONFIG = {"taskId": "t1", "url": _WEBHOOK}
_STORED_CONFIG = {"id": "p1", "taskId": "t1", "url": _WEBHOOK}
_CARD_WITHOUT_PUSH = fetch_card(card(capabilities={"streaming": True}))


@rule(
    "A2A-PUSH-001",
    "Push operation succeeds without the capability",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.7; 0.3 9.5",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS | {CREATE_CONFIG, GET_CONFIG, LIST_CONFIGS, DELETE_CONFIG},
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_CARD_WITHOUT_PUSH + rpc(CREATE_CONFIG, _SET_CONFIG, _STORED_CONFIG),
    clean=_CARD_WITHOUT_PUSH
    + rpc(
        CREATE_CONFIG,
        _SET_CONFIG,
        error=rpc_error(
            -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "there are no push notifications"
        ),
    ),
)
def undeclared(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent card does not declare `pushNotifications`, but an operation on push configurations
    succeeds. Reported as a warning if a message that carries a push configuration is accepted.

    The client waits for notifications that the agent does not promise and may never send. The agent
    must refuse with PushNotificationNotSupportedError, or declare the capability; the client should
    check the card.
    """
    declared = context.declarations
    if declared is None or declared.push or not context.is_success:
        return
    if context.operation not in SENDING_OPERATIONS:
        yield RuleFinding(
            summary=f"`{context.operation}` succeeds, but the card does not "
            f"declare `pushNotifications`"
        )
    elif requested_config(context) is not None:
        yield RuleFinding(
            summary="the agent accepts a message with a push configuration, its card has no "
            "`pushNotifications`",
            severity=Severity.WARNING,
        )


@rule(
    "A2A-PUSH-002",
    "Webhook URL is not https or not public",
    Severity.WARNING,
    section="1.0 13.2; 0.3 9.5",
    hook_points=HookPoint.REQUEST,
    dialects=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS | {CREATE_CONFIG},
    required_flags=FrameFlag.PUSHES,
    flagged=rpc(
        CREATE_CONFIG,
        _SET_CONFIG | {"url": "http://10.0.0.5/hook"},
        _STORED_CONFIG | {"url": "http://10.0.0.5/hook"},
    ),
    clean=rpc(CREATE_CONFIG, _SET_CONFIG, _STORED_CONFIG),
)
def webhook_url(context: RuleContext) -> Iterator[RuleFinding]:
    """A push configuration has a webhook URL that is not https, or whose host is this machine,
    link-local or in a private network. Accepted are a webhook on this machine for an agent on this
    machine, and an https webhook in a private network for an agent that is not public.

    Notifications over http can be read on the way, and an agent that posts to any URL can be
    misused to reach hosts of its own network. The client must set a public https URL; the agent
    should refuse others.
    """
    config = requested_config(context)
    url = string_member(config, "url") if config is not None else ""
    host, agent = host_of(url), host_reach(host_of(context.record.upstream))
    if not host or is_label(url.encode("utf-8", "replace")):
        return
    there = host_reach(host)
    if there is HostReach.LOOPBACK and agent is HostReach.LOOPBACK:
        return
    wrong = []
    if scheme_of(url) != "https":
        wrong.append(
            f"has {f'the scheme {scheme_of(url)}' if scheme_of(url) else 'no scheme'}, it should "
            f"be https"
        )
    if (
        there is HostReach.LOOPBACK
        or there is HostReach.LINK_LOCAL
        or (there is HostReach.PRIVATE and agent is HostReach.PUBLIC)
    ):
        wrong.append(f"is on a {_REACH_WORDS[there]} host")
    if wrong:
        yield RuleFinding(summary=f"the webhook {url[:120]} {' and '.join(wrong)}")


_REACH_WORDS = {
    HostReach.LOOPBACK: "loopback",
    HostReach.LINK_LOCAL: "link-local",
    HostReach.PRIVATE: "private",
}


@rule(
    "A2A-PUSH-003",
    "Push configuration is created without an id",
    Severity.ERROR,
    section="1.0 3.1.7",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.PUSH | FrameFlag.OTHER,
    operations=(CREATE_CONFIG,),
    flagged=rpc(CREATE_CONFIG, _SET_CONFIG, _SET_CONFIG),
    clean=rpc(CREATE_CONFIG, _SET_CONFIG, _STORED_CONFIG),
)
def without_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to CreateTaskPushNotificationConfig has no `id`.

    Without the id the client cannot read or delete the configuration. The agent must create one.
    """
    if context.is_success and isinstance(context.body, dict) and not context.body.get("id"):
        yield RuleFinding(
            summary="the agent created a push configuration without `id`", path=f"{context.root}id"
        )


_SEND_WITH_CONFIG = {"url": _WEBHOOK}


@rule(
    "A2A-PUSH-004",
    "Push configuration sent with a message names a task",
    Severity.WARNING,
    section="1.0 3.2.2, 4.3.1",
    hook_points=HookPoint.REQUEST,
    dialects=Dialects.V1,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.PUSHES,
    flagged=rpc(
        "SendMessage",
        send(configuration={"taskPushNotificationConfig": _SEND_WITH_CONFIG | {"taskId": "t1"}}),
        snapshot("COMPLETED"),
    ),
    clean=rpc(
        "SendMessage",
        send(configuration={"taskPushNotificationConfig": _SEND_WITH_CONFIG}),
        snapshot("COMPLETED"),
    ),
)
def names_task(context: RuleContext) -> Iterator[RuleFinding]:
    """`configuration.taskPushNotificationConfig` of a message has a `taskId`.

    The configuration belongs to the task that the message creates or continues; agents cannot apply
    it to another one. The client must leave `taskId` empty here.
    """
    config = requested_config(context)
    task = string_member(config, "taskId") if config is not None else ""
    if task:
        yield RuleFinding(
            summary=f"the push configuration of a message names the task "
            f'"{task}", it must name none',
            path=f"{context.root}configuration.taskPushNotificationConfig.taskId",
            value=task,
        )


@rule(
    "A2A-PUSH-014",
    "Secrets of a push configuration are returned",
    Severity.WARNING,
    section="1.0 13.4",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.PUSH,
    operations=(CREATE_CONFIG, GET_CONFIG, LIST_CONFIGS),
    flagged=rpc(
        CREATE_CONFIG,
        _SET_CONFIG | {"token": "t0ken-of-hook"},
        _STORED_CONFIG | {"token": "t0ken-of-hook"},
    ),
    clean=rpc(CREATE_CONFIG, _SET_CONFIG | {"token": "t0ken-of-hook"}, _STORED_CONFIG),
)
def shown_again(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to Create, Get or List contains the `token` or the `authentication.credentials` of
    a push configuration. The recording has redaction labels in their place.

    Any client that may read the task can then send notifications in the agent's name and use the
    credentials. The agent must omit the secrets from its answers.
    """
    for config in answered_configs(context):
        found = secret_members(config)
        if found:
            yield RuleFinding(
                summary=f"the agent returns {' and '.join(found)} of push configuration "
                f"{string_member(config, 'id')}"
            )
