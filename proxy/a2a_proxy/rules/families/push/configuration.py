"""Push configurations as they are set (A2A 1.0 sections 3.1.7, 13.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.course import SENDS
from a2a_proxy.rules.declared import word
from a2a_proxy.rules.examples.objects import card, send, snapshot
from a2a_proxy.rules.examples.talk import fetch_card, rpc, rpc_error
from a2a_proxy.rules.given import CREATE
from a2a_proxy.rules.hosts import Reach, host_of, reach, scheme_of
from a2a_proxy.rules.push_configs import DELETE, GET, LIST, pushed, secrets_of, told
from a2a_proxy.rules.rule import Hit, Line, Moment, Scope, When, rule
from a2a_proxy.rules.see import See

_HOOK = "https://client.example.com/hook"
_SET = {"taskId": "t1", "url": _HOOK}
_STORED = {"id": "p1", "taskId": "t1", "url": _HOOK}
_NO_PUSH = fetch_card(card(capabilities={"streaming": True}))


@rule(
    "A2A-PUSH-001",
    "A push operation succeeds without the capability",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.7; 0.3 9.5",
    scope=Scope.LIVE,
    lines=Line.SINCE_0_2,
    when=When.FIRST,
    operations=SENDS | {CREATE, GET, LIST, DELETE},
    needs=When.CARD_SEEN,
    flagged=_NO_PUSH + rpc(CREATE, _SET, _STORED),
    clean=_NO_PUSH
    + rpc(CREATE, _SET, error=rpc_error(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "there are no push notifications")),
)
def undeclared(see: See) -> Iterator[Hit]:
    """The card does not declare `pushNotifications`, and an operation on push configurations succeeds; a message that
    carries a configuration and is accepted is a warning.

    The client waits for notifications that the agent does not promise, and that may never come.
    """
    declared = see.declared
    if declared is None or declared.push or not see.succeeded:
        return
    if see.operation not in SENDS:
        yield Hit(summary=f"`{see.operation}` succeeds, the card does not declare `pushNotifications`")
    elif pushed(see) is not None:
        yield Hit(
            summary="a push configuration is accepted with a message, the card does not declare `pushNotifications`",
            severity=Severity.WARNING,
        )


@rule(
    "A2A-PUSH-002",
    "The URL of a webhook is not https, or not for everybody",
    Severity.WARNING,
    section="1.0 13.2; 0.3 9.5",
    moment=Moment.REQUEST,
    lines=Line.SINCE_0_2,
    operations=SENDS | {CREATE},
    needs=When.PUSHES,
    flagged=rpc(CREATE, _SET | {"url": "http://10.0.0.5/hook"}, _STORED | {"url": "http://10.0.0.5/hook"}),
    clean=rpc(CREATE, _SET, _STORED),
)
def webhook_url(see: See) -> Iterator[Hit]:
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
    if there is Reach.LOOPBACK and agent is Reach.LOOPBACK:
        return
    wrong = []
    if scheme_of(url) != "https":
        wrong.append(f"has {f'the scheme {scheme_of(url)}' if scheme_of(url) else 'no scheme'}, it should be https")
    if there is Reach.LOOPBACK or there is Reach.LINK_LOCAL or (there is Reach.PRIVATE and agent is Reach.PUBLIC):
        wrong.append(f"is on a {_WORDS[there]} host")
    if wrong:
        yield Hit(summary=f"the webhook {url[:120]} {' and '.join(wrong)}")


_WORDS = {Reach.LOOPBACK: "loopback", Reach.LINK_LOCAL: "link-local", Reach.PRIVATE: "private"}


@rule(
    "A2A-PUSH-003",
    "A push configuration is created without an id",
    Severity.ERROR,
    section="1.0 3.1.7",
    scope=Scope.EXCHANGE,
    lines=Line.V1,
    when=When.PUSH | When.OTHER,
    operations=(CREATE,),
    flagged=rpc(CREATE, _SET, _SET),
    clean=rpc(CREATE, _SET, _STORED),
)
def without_id(see: See) -> Iterator[Hit]:
    """The answer to CreateTaskPushNotificationConfig has no `id`.

    The client cannot read or delete the configuration again.
    """
    if see.succeeded and isinstance(see.body, dict) and not see.body.get("id"):
        yield Hit(summary="the created push configuration has no `id`", path=f"{see.root}id")


_EMBEDDED = {"url": _HOOK}


@rule(
    "A2A-PUSH-004",
    "A configuration that comes with a message names a task",
    Severity.WARNING,
    section="1.0 3.2.2, 4.3.1",
    moment=Moment.REQUEST,
    lines=Line.V1,
    operations=SENDS,
    needs=When.PUSHES,
    flagged=rpc(
        "SendMessage",
        send(configuration={"taskPushNotificationConfig": _EMBEDDED | {"taskId": "t1"}}),
        snapshot("COMPLETED"),
    ),
    clean=rpc("SendMessage", send(configuration={"taskPushNotificationConfig": _EMBEDDED}), snapshot("COMPLETED")),
)
def names_task(see: See) -> Iterator[Hit]:
    """`configuration.taskPushNotificationConfig` of a send has a `taskId`.

    It must be empty there: the task is the one that the message creates or goes on with, and another id cannot be
    followed.
    """
    config = pushed(see)
    task = word(config, "taskId") if config is not None else ""
    if task:
        yield Hit(
            summary=f'the configuration in a send names the task "{task}"',
            path=f"{see.root}configuration.taskPushNotificationConfig.taskId",
            value=task,
        )


@rule(
    "A2A-PUSH-014",
    "Secrets of a push configuration are shown again",
    Severity.WARNING,
    section="1.0 13.4",
    scope=Scope.EXCHANGE,
    lines=Line.V1,
    when=When.PUSH,
    operations=(CREATE, GET, LIST),
    flagged=rpc(CREATE, _SET | {"token": "t0ken-of-hook"}, _STORED | {"token": "t0ken-of-hook"}),
    clean=rpc(CREATE, _SET | {"token": "t0ken-of-hook"}, _STORED),
)
def shown_again(see: See) -> Iterator[Hit]:
    """The answer to Create, Get or List has the `token` or the `authentication.credentials` of a configuration. The
    recording has labels in their places.

    Everybody who may read the task can then send notifications in the agent's name, and call with the credentials.
    """
    for config in told(see):
        found = secrets_of(config)
        if found:
            yield Hit(summary=f"{' and '.join(found)} of the push configuration {word(config, 'id')} are in the answer")
