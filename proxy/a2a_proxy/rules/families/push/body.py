"""Rules about the body of webhook deliveries (A2A 1.0 section 4.3.3)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import WEBHOOK, Dialects
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import WEBHOOK_URL, deliver, rpc
from a2a_proxy.rules.examples.objects import status, task
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.push_deliveries import matched_deliveries
from a2a_proxy.rules.state.push_receivers import receiver_rule

_A2A_TYPE, _JSON_TYPE = "application/a2a+json", "application/json"
_CONFIG = {"taskId": "t1", "url": WEBHOOK_URL, "token": "t0ken-of-hook"}
_CREATED_CONFIG = rpc(CREATE_CONFIG, _CONFIG, {"id": "p1", "taskId": "t1", "url": WEBHOOK_URL})
_TOKEN: dict[str, str | None] = {"X-A2A-Notification-Token": "t0ken-of-hook"}


@receiver_rule(
    "A2A-PUSH-007",
    "Delivery body is not a StreamResponse",
    Severity.ERROR,
    section="1.0 4.3.3",
    flagged=_CREATED_CONFIG + deliver(task("WORKING"), headers=_TOKEN),
    clean=_CREATED_CONFIG + deliver(status("WORKING"), headers=_TOKEN),
)
def other_body(context: RuleContext) -> Iterator[RuleFinding]:
    """The body of a delivery does not have exactly one of the members `task`, `message`,
    `statusUpdate` and `artifactUpdate`, although its push configuration was set in 1.0. In 0.2 and
    0.3 the body is not defined.

    Receivers read the body like an event of a stream and find nothing in it. The agent must send a
    StreamResponse; a bare Task is the form of older SDKs.
    """
    for match in matched_deliveries(context):
        delivery = match.delivery
        if (
            len(delivery.members) == 1
            or not delivery.is_whole
            or not all(each["is_v1"] for each in match.receivers)
        ):
            continue
        if delivery.members:
            told = (
                f"the body has {' and '.join(f'`{each}`' for each in delivery.members)}, it must "
                f"have one of them"
            )
        elif delivery.bare:
            told = (
                f"the body is {delivery.bare} without a wrapper, as in 0.3; the push configuration "
                f"was set in 1.0"
            )
        else:
            told = "the body has no `task`, `message`, `statusUpdate` or `artifactUpdate`"
        yield RuleFinding(
            summary=told,
            seq=None if match.is_current else delivery.seq,
            track=None if match.is_current else delivery.record,
        )


@rule(
    "A2A-PUSH-008",
    "Delivery has another content type",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 4.3.3",
    dialects=Dialects.V1,
    bindings=WEBHOOK,
    flagged=deliver(status("WORKING"), media="text/plain"),
    clean=deliver(status("WORKING")),
)
def other_content_type(context: RuleContext) -> Iterator[RuleFinding]:
    """The content type of a delivery in the 1.0 form is not `application/a2a+json`. Reported as
    information for `application/json`, which several SDKs send.

    Web frameworks choose the parser by the content type: the receiver gets no JSON, or answers 415.
    The agent must send `application/a2a+json`; the receiver should accept `application/json` too.
    """
    found = context.request_header("content-type").partition(";")[0].strip().lower()
    if found == _A2A_TYPE:
        return
    told = (
        f"the content type of the delivery is {found[:60]}"
        if found
        else "the delivery has no content type"
    )
    yield RuleFinding(
        summary=f"{told}, it should be {_A2A_TYPE}",
        value=found,
        expected=_A2A_TYPE,
        severity=Severity.INFO if found == _JSON_TYPE else None,
    )
