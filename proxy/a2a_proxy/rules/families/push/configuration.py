"""Push configurations as they are set (A2A 1.0 sections 3.1.7, 13.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc, rpc_error
from a2a_proxy.rules.examples.objects import card, send, snapshot
from a2a_proxy.rules.facts.hosts import HostReach, host_of, reach, scheme_of
from a2a_proxy.rules.run.request_flags import CREATE
from a2a_proxy.rules.state.card_declarations import word
from a2a_proxy.rules.state.push_configs import DELETE, GET, LIST, pushed, secrets_of, told
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_HOOK = "https://client.example.com/hook"
_SET = {"taskId": "t1", "url": _HOOK}
_STORED = {"id": "p1", "taskId": "t1", "url": _HOOK}
_NO_PUSH = fetch_card(card(capabilities={"streaming": True}))


@rule(
    "A2A-PUSH-001",
    "A push operation succeeds without the capability",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.7; 0.3 9.5",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS | {CREATE, GET, LIST, DELETE},
    needs=FrameFlag.CARD_SEEN,
    flagged=_NO_PUSH + rpc(CREATE, _SET, _STORED),
    clean=_NO_PUSH
    + rpc(CREATE, _SET, error=rpc_error(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "there are no push notifications")),
)
def undeclared(see: RuleContext) -> Iterator[RuleFinding]:
    """The card does not declare `pushNotifications`, and an operation on push configurations succeeds; a message that
    carries a configuration and is accepted is a warning.

    The client waits for notifications that the agent does not promise, and that may never come.
    """
    declared = see.declared
    if declared is None or declared.push or not see.succeeded:
        return
    if see.operation not in SENDING_OPERATIONS:
        yield RuleFinding(summary=f"`{see.operation}` succeeds, the card does not declare `pushNotifications`")
    elif pushed(see) is not None:
        yield RuleFinding(
            summary="a push configuration is accepted with a message, the card does not declare `pushNotifications`",
            severity=Severity.WARNING,
        )


@rule(
    "A2A-PUSH-002",
    "The URL of a webhook is not https, or not for everybody",
    Severity.WARNING,
    section="1.0 13.2; 0.3 9.5",
    moment=HookPoint.REQUEST,
    lines=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS | {CREATE},
    needs=FrameFlag.PUSHES,
    flagged=rpc(CREATE, _SET | {"url": "http://10.0.0.5/hook"}, _STORED | {"url": "http://10.0.0.5/hook"}),
    clean=rpc(CREATE, _SET, _STORED),
)
def webhook_url(see: RuleContext) -> Iterator[RuleFinding]:
    """A push configuration has a URL that is not https, or the host of which is this machine, link-local or in a
    private network. A webhook on this machine is fine for an agent on this machine, one in a private network with https
    for an agent that is not public.

    Notifications can be read on the way; and an agent that posts to any address it is told can be made to reach hosts
    of its own network.
    """
    config = pushed(see)
    url = word(config, "url") if config is not None else ""
    host, agent = host_of(url), reach(host_of(see.track.upstream))
    if not host or is_label(url.encode("utf-8", "replace")):
        return
    there = reach(host)
    if there is HostReach.LOOPBACK and agent is HostReach.LOOPBACK:
        return
    wrong = []
    if scheme_of(url) != "https":
        wrong.append(f"has {f'the scheme {scheme_of(url)}' if scheme_of(url) else 'no scheme'}, it should be https")
    if (
        there is HostReach.LOOPBACK
        or there is HostReach.LINK_LOCAL
        or (there is HostReach.PRIVATE and agent is HostReach.PUBLIC)
    ):
        wrong.append(f"is on a {_WORDS[there]} host")
    if wrong:
        yield RuleFinding(summary=f"the webhook {url[:120]} {' and '.join(wrong)}")


_WORDS = {HostReach.LOOPBACK: "loopback", HostReach.LINK_LOCAL: "link-local", HostReach.PRIVATE: "private"}


@rule(
    "A2A-PUSH-003",
    "A push configuration is created without an id",
    Severity.ERROR,
    section="1.0 3.1.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    when=FrameFlag.PUSH | FrameFlag.OTHER,
    operations=(CREATE,),
    flagged=rpc(CREATE, _SET, _SET),
    clean=rpc(CREATE, _SET, _STORED),
)
def without_id(see: RuleContext) -> Iterator[RuleFinding]:
    """The answer to CreateTaskPushNotificationConfig has no `id`.

    The client cannot read or delete the configuration again.
    """
    if see.succeeded and isinstance(see.body, dict) and not see.body.get("id"):
        yield RuleFinding(summary="the created push configuration has no `id`", path=f"{see.root}id")


_EMBEDDED = {"url": _HOOK}


@rule(
    "A2A-PUSH-004",
    "A configuration that comes with a message names a task",
    Severity.WARNING,
    section="1.0 3.2.2, 4.3.1",
    moment=HookPoint.REQUEST,
    lines=Dialects.V1,
    operations=SENDING_OPERATIONS,
    needs=FrameFlag.PUSHES,
    flagged=rpc(
        "SendMessage",
        send(configuration={"taskPushNotificationConfig": _EMBEDDED | {"taskId": "t1"}}),
        snapshot("COMPLETED"),
    ),
    clean=rpc("SendMessage", send(configuration={"taskPushNotificationConfig": _EMBEDDED}), snapshot("COMPLETED")),
)
def names_task(see: RuleContext) -> Iterator[RuleFinding]:
    """`configuration.taskPushNotificationConfig` of a send has a `taskId`.

    It must be empty there: the task is the one that the message creates or goes on with, and another id cannot be
    followed.
    """
    config = pushed(see)
    task = word(config, "taskId") if config is not None else ""
    if task:
        yield RuleFinding(
            summary=f'the configuration in a send names the task "{task}"',
            path=f"{see.root}configuration.taskPushNotificationConfig.taskId",
            value=task,
        )


@rule(
    "A2A-PUSH-014",
    "Secrets of a push configuration are shown again",
    Severity.WARNING,
    section="1.0 13.4",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    when=FrameFlag.PUSH,
    operations=(CREATE, GET, LIST),
    flagged=rpc(CREATE, _SET | {"token": "t0ken-of-hook"}, _STORED | {"token": "t0ken-of-hook"}),
    clean=rpc(CREATE, _SET | {"token": "t0ken-of-hook"}, _STORED),
)
def shown_again(see: RuleContext) -> Iterator[RuleFinding]:
    """The answer to Create, Get or List has the `token` or the `authentication.credentials` of a configuration. The
    recording has labels in their places.

    Everybody who may read the task can then send notifications in the agent's name, and call with the credentials.
    """
    for config in told(see):
        found = secrets_of(config)
        if found:
            yield RuleFinding(
                summary=f"{' and '.join(found)} of the push configuration {word(config, 'id')} are in the answer"
            )
