"""Agent cards of a session: the identity of an agent, and whether its card changed from one fetch
to the next."""

import hashlib

import msgspec

from a2a_proxy.model.values import Binding, Connection, Exchange, Frame, FrameKind
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, key_bounds
from a2a_proxy.telemetry.call_facts import CardFetch, CardIdentity

_MAX_CARDS = 4096
"""Limit of remembered cards per address, and of remembered calls in total."""


class _ChangedCard(msgspec.Struct, frozen=True):
    """A card that differed from the previous one when it was fetched."""

    exchange: int
    at: int
    operation: str
    card: CardIdentity
    url: str = ""
    """URL of the card; empty if an operation returned it."""


class CardHistory:
    """The cards fetched so far, by agent (`Exchange.agent`)."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._cards: dict[str, list[_ChangedCard]] = {}
        self._read_calls: dict[int, CardIdentity | None] = {}
        """Key of a finished call -> the card it returned, or None."""

    def card_calls(self, session: SessionRow) -> list[ExchangeRow]:
        """Return the calls of a session that request a card."""
        names = "(SELECT id FROM text WHERE value IN (?, ?))"
        query = (
            f"SELECT id FROM exchange WHERE id >= ? AND id < ? AND operation IN {names} ORDER BY id"
        )
        span = key_bounds(session.id)
        numbers = [row[0] for row in self._recording.db.execute(query, (*span, *CARD_OPERATIONS))]
        return [row for row in map(self._recording.read_exchange, numbers) if row is not None]

    def add_call(self, row: ExchangeRow, connection: Connection | None) -> None:
        """Add the card that a finished call returned, if any."""
        card = self._fetched_card(row) if connection is not None and row.exchange.closed else None
        if card is None or connection is None:
            return
        known = self._cards.setdefault(row.exchange.agent, [])
        before = self._previous_card(known, row.exchange)
        url = _card_url(row.exchange, connection)
        if before is None or before.card != card or before.url != url:
            known[:] = [each for each in known if each.exchange != row.exchange.id]
            known.append(
                _ChangedCard(
                    row.exchange.id, row.exchange.closed, row.exchange.operation, card, url
                )
            )
            del known[:-_MAX_CARDS]

    def latest_card(self, agent: str, until: int) -> CardIdentity | None:
        """Return the last card of an agent that was fetched up to the time `until` (ns), or
        None."""
        before = self._cards_until(agent, until)
        return before[-1].card if before else None

    def latest_card_url(self, agent: str, until: int) -> str:
        """Return the URL from which the agent's card was last fetched up to the time `until` (ns);
        empty if there is none."""
        return next(
            (each.url for each in reversed(self._cards_until(agent, until)) if each.url), ""
        )

    def _cards_until(self, agent: str, until: int) -> list[_ChangedCard]:
        return [each for each in self._cards.get(agent, []) if each.at <= until]

    def card_fetch(self, row: ExchangeRow) -> CardFetch | None:
        """Return the card of a call, compared with that of the previous such call, or None if it
        returned no card."""
        card = self._fetched_card(row) if row.exchange.operation in CARD_OPERATIONS else None
        if card is None:
            return None
        before = self._previous_card(self._cards.get(row.exchange.agent, []), row.exchange)
        return CardFetch(card, before.card.digest != card.digest if before is not None else None)

    def _previous_card(self, known: list[_ChangedCard], exchange: Exchange) -> _ChangedCard | None:
        alike = (
            each
            for each in known
            if each.operation == exchange.operation and each.exchange != exchange.id
        )
        return next(
            (
                each
                for each in sorted(alike, key=lambda seen: -seen.at)
                if each.at <= exchange.closed
            ),
            None,
        )

    def _fetched_card(self, row: ExchangeRow) -> CardIdentity | None:
        if row.key in self._read_calls:
            return self._read_calls[row.key]
        cards = (
            _card_in_frame(frame.frame, row.exchange)
            for frame in self._recording.read_frames(row.key)
        )
        card = next((card for card in cards if card is not None), None)
        if row.exchange.closed:
            self._read_calls[row.key] = card
            if len(self._read_calls) > _MAX_CARDS:
                del self._read_calls[next(iter(self._read_calls))]
        return card


def _card_url(exchange: Exchange, connection: Connection) -> str:
    """Return the URL of the card that the call fetched, at the agent and without a query, which may
    have a secret."""
    if exchange.binding is not Binding.CARD:
        return ""
    address = (
        connection.upstream if "://" in connection.upstream else f"http://{connection.upstream}"
    )
    return address.rstrip("/") + exchange.target.partition("?")[0]


def _card_in_frame(frame: Frame, exchange: Exchange) -> CardIdentity | None:
    value = readable_payload(frame, exchange) if frame.kind is FrameKind.RESPONSE else None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    version = value.get("version")
    rest = msgspec.json.encode(
        {name: each for name, each in value.items() if name != "signatures"}, order="sorted"
    )
    signed = bool(value.get("signatures"))
    return CardIdentity(
        value["name"],
        version if isinstance(version, str) else "",
        signed,
        hashlib.sha256(rest).digest(),
    )
