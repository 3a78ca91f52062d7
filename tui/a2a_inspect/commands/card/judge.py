"""Judge a card with the rules: its request and response become the conversation that a recording
would have."""

from collections.abc import Iterator

import msgspec

from a2a_inspect.commands.card.source import CardSource
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.cli.card.response import CardResponse
from a2a_proxy.model.values import Binding, Finding, Observation
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.observer import Observer
from a2a_proxy.protocol.bindings.card import WELL_KNOWN_PATHS, is_card_path
from a2a_proxy.protocol.operations import CARD_OPERATION
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.run.engine import Engine
from a2a_proxy.rules.run.repeat_limit import MAX_PER_KIND

_CARD_FLAGS = FrameFlag.CARD | FrameFlag.OTHER | FrameFlag.UNCLEAN
_SECOND = 1_000_000_000
_KEY_RULE = "A2A-CARD-013"
_REWRITTEN_FIELDS = frozenset(
    {b"content-length", b"transfer-encoding", b"content-encoding", b"connection"}
)
"""Fields that describe the body as sent; the body here is decoded."""


def card_rules(*, fetched: bool, has_keys: bool = False) -> dict[str, Rule]:
    """Return the rules that need nothing but a card; of a card that was `fetched`, also those about
    the response, and if there are keys, the one about verified signatures."""
    scopes = {EvidenceScope.FRAME, EvidenceScope.EXCHANGE} if fetched else {EvidenceScope.FRAME}
    return {
        ident: rule
        for ident, rule in all_rules().items()
        if rule.scope in scopes and _is_about_cards(rule) and (has_keys or ident != _KEY_RULE)
    }


def _is_about_cards(rule: Rule) -> bool:
    if Binding.CARD not in rule.bindings or (
        rule.operations and CARD_OPERATION.name not in rule.operations
    ):
        return False
    if HookPoint.ANSWER in rule.hook_points:
        return rule.trigger_flags is None or bool(rule.trigger_flags & _CARD_FLAGS)
    # Rules about the heads of any request judge the client, which is this program.
    return HookPoint.HEADS in rule.hook_points and CARD_OPERATION.name in rule.operations


def judge_card(
    source: CardSource,
    rules: dict[str, Rule],
    redactor: Redactor,
    now: int,
    verifier: CardVerifier | None = None,
) -> tuple[list[Finding], list[str]]:
    """Return the findings of the rules, without exchange and frame, which are not in any recording,
    and a line about each signature of the card.

    `now` is the time of the conversation in ns. The redactor learns the secrets of the card.
    """
    observer = Observer(
        redactor, rules=Engine(rules, max_per_exchange=MAX_PER_KIND), cards=verifier
    )
    out: list[Observation] = []
    for chunk in _make_conversation(source.responses, now):
        observer.feed(chunk, out)
    found = [each for each in out if type(each) is Finding]
    calls = observer.pop_changes().exchanges
    lines = [f"card {each.describe()}" for call in calls for each in call.card_signatures]
    return [
        msgspec.structs.replace(each, connection=0, exchange=0, seq=-1) for each in found
    ], lines


def _make_conversation(responses: list[CardResponse], now: int) -> Iterator[Chunk]:
    """Yield each request with its response on one connection, in the form in which the relay writes
    them."""
    up, down = Direction.TO_AGENT, Direction.TO_CLIENT
    client = f"{responses[-1].client}:0"
    yield Chunk(
        1, ChunkKind.OPEN, up, now, msgspec.json.encode(ConnectionFacts(client, "", "agent"))
    )
    yield Chunk(1, ChunkKind.DIALED, up, now, msgspec.json.encode(DialFacts("agent", peer="agent")))
    for each in responses:
        # A card may have any path, but only at these a response without a card is judged as one.
        path = each.path if is_card_path("GET", each.path) else WELL_KNOWN_PATHS[0]
        request = f"GET {path} HTTP/1.1\r\nHost: agent\r\nAccept: application/json\r\n\r\n"
        yield Chunk(1, ChunkKind.DATA, up, now, request.encode("latin-1", "replace"))
        yield Chunk(1, ChunkKind.DATA, down, now, _response_bytes(each))
    yield Chunk(1, ChunkKind.CLOSED, up, now)
    # Rules that wait for another card wait some seconds.
    yield Chunk(0, ChunkKind.END, up, now + 60 * _SECOND)


def _response_bytes(response: CardResponse) -> bytes:
    fields = [each for each in response.headers if each[0].lower() not in _REWRITTEN_FIELDS]
    head = [f"HTTP/1.1 {response.status} {response.reason}".encode("latin-1", "replace")]
    head += [
        name + b": " + value
        for name, value in (*fields, (b"Content-Length", b"%d" % len(response.body)))
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + response.body
