"""Rules about the credentials and the token of webhook deliveries (A2A 1.0 section 4.3.3)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Severity
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import WEBHOOK_URL, deliver, rpc
from a2a_proxy.rules.examples.objects import status
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.push_deliveries import Delivery, MatchedDelivery, matched_deliveries
from a2a_proxy.rules.state.push_receivers import PushReceiver, receiver_rule

_CHALLENGED_SCHEMES = frozenset(
    {"digest", "negotiate", "ntlm", "mutual", "scram-sha-1", "scram-sha-256", "hoba"}
)
"""Schemes whose credentials answer a challenge of the receiver, so that a first request has
none."""
_USUAL_SCHEMES = frozenset({"basic", "bearer"})
"""Schemes that are sent in `Authorization` for certain; the names of others may mean an API key."""
_CONFIG = {"taskId": "t1", "url": WEBHOOK_URL}
_WITH_CREDENTIALS = rpc(
    CREATE_CONFIG,
    _CONFIG | {"authentication": {"scheme": "Bearer", "credentials": "cr3dentials-of-hook"}},
    _CONFIG | {"id": "p1"},
)
_WITH_TOKEN = rpc(CREATE_CONFIG, _CONFIG | {"token": "t0ken-of-hook"}, _CONFIG | {"id": "p1"})


def _report(match: MatchedDelivery, summary: str, severity: Severity) -> RuleFinding:
    """Return a finding about the delivery, which may be an earlier one."""
    if match.is_current:
        return RuleFinding(summary=summary, severity=severity)
    return RuleFinding(
        summary=summary, severity=severity, seq=match.delivery.seq, track=match.delivery.record
    )


@receiver_rule(
    "A2A-PUSH-005",
    "Delivery lacks the configured credentials",
    Severity.ERROR,
    section="1.0 4.3.3; 0.3 9.5",
    flagged=_WITH_CREDENTIALS + deliver(status("WORKING")),
    clean=_WITH_CREDENTIALS
    + deliver(status("WORKING"), headers={"Authorization": "Bearer cr3dentials-of-hook"}),
)
def without_credentials(context: RuleContext) -> Iterator[RuleFinding]:
    """A delivery has no `Authorization` with a scheme and the credentials of its push
    configuration. Reported as a warning if the configuration names a scheme without credentials.
    Credentials are compared by their redaction labels.

    The receiver refuses the notification, or accepts notifications from anybody. The agent must
    send the credentials that the client configured.
    """
    for match in matched_deliveries(context):
        faults = [_credentials_fault(match.delivery, each) for each in match.receivers]
        if all(faults):
            is_known = any(each["credentials"] for each in match.receivers)
            yield _report(match, faults[-1], Severity.ERROR if is_known else Severity.WARNING)


def _credentials_fault(delivery: Delivery, receiver: PushReceiver) -> str:
    """Return what is wrong with the credentials; empty if they are those of the configuration, or
    may be."""
    schemes, credentials = receiver["schemes"], receiver["credentials"]
    if not schemes or _CHALLENGED_SCHEMES.intersection(schemes):
        return ""
    sent = [each for each in delivery.credentials if each.location == "authorization"]
    if not sent:
        if delivery.credentials and not _USUAL_SCHEMES.issuperset(schemes):
            return ""
        return (
            f"the delivery has no `Authorization`, the push configuration asks for "
            f"{_scheme_names(schemes)}"
        )
    for each in sent:
        if not each.name or is_label(each.name.encode("utf-8", "replace")):
            return ""  # the scheme is redacted too
        if each.name in schemes:
            is_other = each.name != "basic" and _are_different(each.value, credentials)
            return "the credentials are not those of the push configuration" if is_other else ""
    asked = _scheme_names(schemes)
    return (
        f"`Authorization` has the scheme {sent[0].name.title()}, the push configuration asks for "
        f"{asked}"
    )


def _scheme_names(schemes: list[str]) -> str:
    return " or ".join(each.title() for each in schemes)


def _are_different(sent: str, configured: str) -> bool:
    """Whether both secrets are known and differ. A label can only be compared with another
    label."""
    if not sent or not configured or sent == configured:
        return False
    return is_label(sent.encode("utf-8", "replace")) == is_label(
        configured.encode("utf-8", "replace")
    )


@receiver_rule(
    "A2A-PUSH-006",
    "Delivery lacks the configured token",
    Severity.WARNING,
    section="1.0 4.3.1; 0.3 9.5",
    flagged=_WITH_TOKEN
    + deliver(status("WORKING"), headers={"X-A2A-Notification-Token": "another-t0ken"}),
    clean=_WITH_TOKEN
    + deliver(status("WORKING"), headers={"X-A2A-Notification-Token": "t0ken-of-hook"}),
)
def without_token(context: RuleContext) -> Iterator[RuleFinding]:
    """A delivery has another `X-A2A-Notification-Token` than its push configuration, or the token
    is in none of its header fields. Reported as information if it is missing, but the configured
    credentials are there. Tokens are compared by their redaction labels.

    The header field is a convention: 1.0 has the token, but does not name the field. The receiver
    cannot recognise the notification as one that it asked for, and drops it. The agent should send
    the token.
    """
    for match in matched_deliveries(context):
        faults = [_token_fault(match.delivery, each) for each in match.receivers]
        if not all(faults):
            continue
        proven = any(
            each["credentials"] and not _credentials_fault(match.delivery, each)
            for each in match.receivers
        )
        is_minor = proven and not match.delivery.token
        yield _report(match, faults[-1], Severity.INFO if is_minor else Severity.WARNING)


def _token_fault(delivery: Delivery, receiver: PushReceiver) -> str:
    """Return what is wrong with the token; empty if it is that of the configuration, or may be."""
    configured = receiver["token"]
    if (
        not configured
        or configured in delivery.values
        or any(each.value == configured for each in delivery.credentials)
    ):
        return ""
    if not delivery.token:
        return "the delivery has no `X-A2A-Notification-Token`, the push configuration has a token"
    if _are_different(delivery.token, configured):
        return "the `X-A2A-Notification-Token` is not the token of the push configuration"
    return ""
