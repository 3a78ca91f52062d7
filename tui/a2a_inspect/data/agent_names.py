"""Names of the agents of a session: the user's, else that in the agent's card, else the address."""

import json
import sys
from collections import Counter

from a2a_proxy.model.values import Connection
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import key_bounds, make_key
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.telemetry.cards import CardHistory
from a2a_proxy.telemetry.services import ServiceNames

_MAX_CALLS = 1000
"""Newest calls for a card that are examined."""
_CARD_CALLS = """SELECT id, connection FROM exchange WHERE id >= ? AND id < ? AND operation IN (
    SELECT id FROM text WHERE value IN (SELECT value FROM json_each(?))) ORDER BY id DESC LIMIT ?"""


class AgentNames:
    """The names as they are known now. If two agents have the same name, their addresses are
    added."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._names: dict[str, str] = {}
        self._upstream_names: dict[str, str] = {}
        """The user's names, by upstream."""
        row = recording.read_session(session)
        if row is None:
            return
        services, cards = ServiceNames(row.facts), CardHistory(recording)
        connections: dict[int, Connection | None] = {}
        for exchange, connection in _card_calls(recording, session):
            if connection not in connections:
                found = recording.read_connection(make_key(session, connection))
                connections[connection] = found.connection if found is not None else None
            by = connections[connection]
            call = recording.read_exchange(exchange)
            if call is None or (agent := call.exchange.agent) in self._names:
                continue
            cards.add_call(call, by)
            if (card := cards.latest_card(agent, sys.maxsize)) is not None:
                self._names[agent] = services.find_name(by, card)
        if any(row.facts.names):
            for each in (found.connection for found in recording.read_connections(session)):
                name = services.find_name(each, None)
                if name in row.facts.names:
                    self._names.setdefault(each.upstream, name)
                    self._upstream_names[each.upstream] = name
        counts = Counter(self._names.values())
        self._names = {
            address: f"{name} ({address})" if counts[name] > 1 else name
            for address, name in self._names.items()
        }

    def find(self, address: str) -> str:
        """Return the name of the agent at this address, or the address; below an upstream with a
        name, that and the base path."""
        named = next((each for each in self._upstream_names if address.startswith(f"{each}/")), "")
        return (
            self._names.get(address)
            or f"{self._upstream_names.get(named, '')}{address.removeprefix(named)}"
        )


def _card_calls(recording: Recording, session: int) -> list[tuple[int, int]]:
    """Return exchange key and connection number of the calls that request a card, the newest
    first."""
    keys = key_bounds(session)
    with translate_errors(recording.path):
        rows = recording.db.execute(_CARD_CALLS, (*keys, json.dumps(CARD_OPERATIONS), _MAX_CALLS))
        return [(row[0], row[1]) for row in rows]
