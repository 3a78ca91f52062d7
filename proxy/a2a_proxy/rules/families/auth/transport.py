"""Rules about credentials in transit and inside messages (A2A 1.0 sections 7.1, 7.6.3, 13.4)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    CARD,
    HTTP,
    NETWORK,
    WEBHOOK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, rest, rpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, reply, send, snapshot, state, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.credentials import find_credentials, url_credentials
from a2a_proxy.rules.facts.hosts import HostReach, host_of, plain_text_reach
from a2a_proxy.rules.facts.secret_places import secret_paths
from a2a_proxy.rules.state.card_declarations import object_member
from a2a_proxy.rules.state.push_configs import requested_config, secret_members
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_BEARER: Fields = {"Authorization": "Bearer t0ken-of-ann"}
_REMOTE_HOST = "http://agent.example.com"
_REMOTE_TLS = "https://agent.example.com"


@rule(
    "A2A-AUTH-001",
    "Credentials in plain text",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 7.1, 13.4; 0.3 4.1",
    hook_points=HookPoint.HEADS,
    bindings=NETWORK | WEBHOOK | CARD,
    flagged=rpc(
        "GetTask",
        TASK_PARAMS,
        task(),
        headers=_BEARER,
        upstream=_REMOTE_HOST,
        host="agent.example.com",
    ),
    clean=rpc(
        "GetTask",
        TASK_PARAMS,
        task(),
        headers=_BEARER,
        upstream=_REMOTE_TLS,
        host="agent.example.com",
    ),
)
def plain_text(context: RuleContext) -> Iterator[RuleFinding]:
    """A request carries `Authorization`, a cookie, an API key or a token, in a header field or the
    URL, to an http upstream that is not on this machine. Reported as a warning if the upstream is
    in a private network.

    Anyone on the network path can read the credentials and use them. The operator of the agent must
    offer https; the client should refuse to send credentials over http. Replace credentials that
    were sent this way.
    """
    far = plain_text_reach(context.record.upstream)
    if far is HostReach.LOOPBACK:
        return
    found = find_credentials(context.exchange, context.declarations)
    if found:
        told = ", ".join(dict.fromkeys(map(str, found)))
        yield RuleFinding(
            summary=f"credentials ({told}) are sent to {context.record.upstream} in plain text",
            seq=-1,
            severity=None if far is HostReach.PUBLIC else Severity.WARNING,
        )


@rule(
    "A2A-AUTH-004",
    "A key or token in the URL",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 13.4; 0.3 4.1; RFC 6750 2.3",
    hook_points=HookPoint.HEADS,
    bindings=HTTP | CARD,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=rest("GET", "/tasks/t1?api_key=k-1234567890", None, task()),
    clean=rest("GET", "/tasks/t1", None, task(), headers={"x-api-key": "k-1234567890"}),
)
def in_the_url(context: RuleContext) -> Iterator[RuleFinding]:
    """The query of the request contains a key or token, or the authority contains user info.
    Reported as information if the card declares that its API key belongs there.

    Servers and proxies write URLs to their logs, including the credentials. The client should send
    credentials in a header field. The agent must change its card if the card requires them in the
    URL.
    """
    exchange = context.exchange
    if "?" not in exchange.target and "@" not in exchange.authority:
        return
    declared = context.declarations
    schemes = declared.schemes.values() if declared is not None else ()
    for each in url_credentials(exchange, declared):
        wanted = any(each.fits_scheme(scheme) for scheme in schemes)
        yield RuleFinding(
            summary=f"the URL contains a credential: {each}",
            seq=-1,
            severity=Severity.INFO if wanted else None,
        )


_WEBHOOK = {"taskId": "t1", "url": "https://client.example.com/hook", "token": "t0ken-of-hook"}
_SET_CONFIG = "CreateTaskPushNotificationConfig"


@rule(
    "A2A-AUTH-010",
    "Credentials of a push configuration in plain text",
    Severity.WARNING,
    section="1.0 13.4, 13.2; 0.3 9.5",
    bindings=NETWORK,
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.FRAME,
    dialects=Dialects.ALL,
    operations=SENDING_OPERATIONS | {_SET_CONFIG},
    required_flags=FrameFlag.PUSHES,
    flagged=rpc(
        _SET_CONFIG,
        _WEBHOOK,
        {"id": "p1", "taskId": "t1", "url": _WEBHOOK["url"]},
        upstream=_REMOTE_HOST,
        host="agent.example.com",
    ),
    clean=rpc(
        _SET_CONFIG,
        _WEBHOOK,
        {"id": "p1", "taskId": "t1", "url": _WEBHOOK["url"]},
        upstream=_REMOTE_TLS,
        host="agent.example.com",
    ),
)
def push_in_clear(context: RuleContext) -> Iterator[RuleFinding]:
    """A push configuration with a token or credentials is sent to an http upstream that is not on
    this machine, or the webhook URL itself is an http URL of another machine, so that the agent
    will send them there in plain text.

    Anyone on the network path can use them to send the client forged notifications. The client
    should use an https webhook, and the operator of the agent must offer https.
    """
    found = requested_config(context)
    if found is None or not secret_members(found):
        return
    told = " and ".join(secret_members(found))
    if plain_text_reach(context.record.upstream) is not HostReach.LOOPBACK:
        yield RuleFinding(
            summary=f"{told} of a push configuration: sent to {context.record.upstream} "
            f"in plain text"
        )
    url = found.get("url")
    if (
        isinstance(url, str)
        and url.lower().startswith("http://")
        and plain_text_reach(url) is not HostReach.LOOPBACK
    ):
        yield RuleFinding(
            summary=f"{told} of a push configuration: sent to the webhook http://{host_of(url)} in "
            f"plain text"
        )


def _login_script(text: str) -> Script:
    wanted = state("AUTH_REQUIRED", message=reply("log in first"))
    asks = rpc("SendMessage", send("book it"), snapshot("AUTH_REQUIRED", status=wanted))
    return asks + rpc(
        "SendMessage", send(text, id="m2", taskId="t1"), snapshot("COMPLETED", second=1)
    )


@rule(
    "A2A-AUTH-008",
    "Credentials in a message",
    Severity.WARNING,
    section="1.0 7.6.3, 7.6",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=_login_script("here it is: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2ln"),
    clean=_login_script("I have logged in"),
)
def in_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A client's message to a task in AUTH_REQUIRED contains an apparent token, key or password,
    and the request activates no extension that could allow credentials in messages. The recording
    contains a label in its place.

    Messages are stored in histories and forwarded to other agents and to models. The client should
    send credentials outside the protocol, for example through the login that the agent requested.
    """
    request_snapshot, exchange = context.record.request_snapshot, context.exchange
    if (
        request_snapshot is None
        or request_snapshot.state != TaskState.AUTH_REQUIRED
        or exchange.extensions
    ):
        return
    body = context.body if isinstance(context.body, dict) else {}
    for path in secret_paths(object_member(body, "message").get("parts")):
        told = f"`message.parts{path}`, sent to a task in AUTH_REQUIRED, looks like a credential"
        yield RuleFinding(summary=told, is_sure=False)
