"""Rules about discovery and caching of agent cards (A2A 1.0 sections 8.2, 8.6.1)."""

import hashlib
import re
from collections.abc import Iterator

import msgspec

from a2a_proxy.model.values import Actor, Dialect, FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, http
from a2a_proxy.rules.examples.objects import card
from a2a_proxy.rules.examples.script import MS
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.state.card_declarations import is_v1, string_member

WELL_KNOWN = "/.well-known/agent-card.json"
_NOT_FOUND_STATUSES = frozenset({404, 405, 410})
_CARD_WAIT = 3.0
"""Seconds during which the card may be found elsewhere, which shows the agent's dialect."""
_OLD_DIALECTS = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.VENDOR})
_MAX_AGE = re.compile(r"(?i)(?:^|[\s,])max-age\s*=")
_MAX_CARDS = 16
"""Maximum number of remembered cards of one agent, by address, path and credentials."""


def _check_card_found(context: RuleContext) -> Iterator[RuleFinding]:
    found = context.agent.card
    name, session = context.agent.name, context.session
    here = (
        each for each in session.agents if each == name or each.startswith(f"{name}/")
    )  # without a card, by paths
    spoken = set(map(session.facts.get_dialect, here)) - {Dialect.UNKNOWN}
    if found is None:
        if not spoken & _OLD_DIALECTS:
            yield RuleFinding(
                summary=f"no agent card at {WELL_KNOWN}: {context.due_note}",
                seq=-1,
                is_sure=bool(spoken),
            )
    elif is_v1(found) or string_member(found, "protocolVersion").startswith("0.3"):
        yield RuleFinding(
            summary=f"the agent card is not at {WELL_KNOWN} ({context.due_note}) "
            f"but at another path",
            seq=-1,
            is_final=True,
        )


_LOST_CARD = http("GET", WELL_KNOWN, version="", status=404, answer="{}")


@rule(
    "A2A-CARD-001",
    "The agent card is not at the well-known path",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 8.2; 0.3 5.3",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=CARD,
    operations=("GetAgentCard",),
    due=_check_card_found,
    settled_at_end=True,
    flagged=(_LOST_CARD + fetch_card(path="/.well-known/agent.json")).then(
        fetch_card(path="/.well-known/agent.json"), 4000 * MS
    ),
    clean=fetch_card(),
)
def well_known(context: RuleContext) -> Iterator[RuleFinding]:
    """`GET /.well-known/agent-card.json` is answered with 404, 405 or 410. Not reported if the
    agent serves a card within three seconds that shows that it speaks 0.1 or 0.2, which use another
    path. The confidence is low if nothing else is known about the agent.

    Clients try this path first, and most of them try no other, so they cannot find the agent. The
    agent must serve its card there, and a proxy in between must forward that path.
    """
    exchange = context.exchange
    if (
        exchange.status in _NOT_FOUND_STATUSES
        and exchange.method == "GET"
        and exchange.target.partition("?")[0] == WELL_KNOWN
    ):
        context.schedule_due(_CARD_WAIT, f"status {exchange.status}")
    yield from ()


@rule(
    "A2A-CARD-002",
    "The agent card is not JSON",
    Severity.WARNING,
    section="1.0 8.2, 14.3; 0.3 5.3",
    scope=EvidenceScope.EXCHANGE,
    bindings=CARD,
    trigger_flags=FrameFlag.CARD | FrameFlag.OTHER,
    flagged=fetch_card(media="text/html"),
    clean=fetch_card(),
)
def not_json(context: RuleContext) -> Iterator[RuleFinding]:
    """The 200 response to a card request has a `Content-Type` other than JSON, or its body is not
    JSON.

    Clients that check the content type refuse the card, and no client can use an HTML page. The
    agent, or the web server that answers for this path, must send the card as `application/json`.
    """
    exchange, media = context.exchange, context.media_type
    if (
        exchange.status != 200
        or exchange.method != "GET"
        or context.frame.kind is FrameKind.COMMENT
    ):
        return
    if media != "application/json" and not media.endswith("+json"):
        yield RuleFinding(summary=f'the card has the Content-Type "{media}"', value=media)
    elif context.value is None and not context.frame.truncated:
        yield RuleFinding(summary="the card response's body is not JSON")


@rule(
    "A2A-CARD-010",
    "The agent card has no caching headers",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 8.6.1",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=CARD,
    operations=("GetAgentCard",),
    flagged=fetch_card(reply_headers={"Cache-Control": None, "ETag": None}),
    clean=fetch_card(),
)
def caching(context: RuleContext) -> Iterator[RuleFinding]:
    """A card response lacks `ETag`, or `Cache-Control` with `max-age`.

    Without them clients fetch the whole card for every call, or keep an outdated card indefinitely.
    The agent, or the gateway that serves the card, should add them.
    """
    if context.exchange.status != 200:
        return
    lacking = (
        []
        if any(map(_MAX_AGE.search, context.response_headers("cache-control")))
        else ["`Cache-Control: max-age`"]
    )
    lacking += [] if context.response_header("etag") else ["`ETag`"]
    if lacking:
        yield RuleFinding(summary=f"the card response lacks {' and '.join(lacking)}")


@rule(
    "A2A-CARD-011",
    "The card changed, but its version did not",
    Severity.WARNING,
    section="1.0 8.6.1",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    bindings=CARD,
    trigger_flags=FrameFlag.CARD,
    operations=("GetAgentCard",),
    flagged=fetch_card()
    + fetch_card(card(description="Another text"), reply_headers={"ETag": '"2"'}),
    clean=fetch_card()
    + fetch_card(card(description="Another text", version="1.0.1"), reply_headers={"ETag": '"2"'}),
)
def same_version(context: RuleContext) -> Iterator[RuleFinding]:
    """Two requests for one URL with the same credentials returned different cards (ignoring
    signatures) with the same `version` or the same `ETag`.

    Clients that cache by version or entity tag keep using the old card. The agent must change the
    version and the `ETag` together with the card.
    """
    found = read_card(context)
    if not found or context.frame.redacted:  # a label may be in one card and not in the other
        return
    digest = hashlib.sha256(
        msgspec.json.encode(
            {key: value for key, value in found.items() if key != "signatures"},
            order="deterministic",
        )
    ).hexdigest()
    now = {
        "digest": digest,
        "version": string_member(found, "version"),
        "etag": context.response_header("etag"),
    }
    cards = context.agent.notes.setdefault("cards", {})
    exchange = context.exchange
    key = f"{exchange.authority}{exchange.target} {principal_digest(exchange)}"
    before = cards.pop(key, None)
    if len(cards) >= _MAX_CARDS:
        del cards[next(iter(cards))]
    cards[key] = now
    if before is None or before["digest"] == digest:
        return
    for name, label in (("version", "version"), ("etag", "ETag")):
        if now[name] and now[name] == before[name]:
            yield RuleFinding(
                summary=f"the card changed, but its {label} is still {now[name]}", value=now[name]
            )
            return
