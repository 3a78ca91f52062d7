"""The resources of spans and log records, and the names of the services: one for each agent of a
session. No I/O."""

from collections.abc import Mapping
from urllib.parse import unquote

import msgspec

from a2a_proxy.model.values import Connection
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow
from a2a_proxy.relay.route import format_address
from a2a_proxy.telemetry.attributes import split_address
from a2a_proxy.telemetry.call_facts import CardIdentity
from a2a_proxy.telemetry.values import SERVICE_NAME, Attributes, cut_text


class _Pair(msgspec.Struct, frozen=True):
    """A `--listen` with its `--upstream`."""

    listens: tuple[str, ...]
    """Bound addresses."""
    host: str
    """Host of the upstream."""
    name: str
    """The agent's name as given by the user; empty if there is none."""


class ServiceNames:
    """Names of the agents of one session: the user's, else that in the agent's card, else the
    address."""

    def __init__(self, facts: SessionFacts) -> None:
        pairs = zip(facts.listens, facts.upstreams, facts.names, strict=False)
        self._pairs = [
            _Pair(tuple(listens.split(", ")), _host_of(upstream), name.strip())
            for listens, upstream, name in pairs
        ]

    def find_name(
        self, connection: Connection | None, card: CardIdentity | None, agent: str = ""
    ) -> str:
        """Return the name of an agent (`Exchange.agent`) that is called on a connection, and whose
        last card is `card`; empty if nothing is known."""
        if connection is None:
            return ""
        known = self._given_name(connection) or (card.name.strip() if card is not None else "")
        return cut_text(known or _address_name(connection, agent or connection.upstream))

    def _given_name(self, connection: Connection) -> str:
        """Return the name that the user gave to the pair. A listener that an agent card opened
        belongs to the pair with the host of its agent, if there is only one."""
        port = split_address(connection.listen)[1]
        bound = [each for each in self._pairs if connection.listen in each.listens] or [
            each for each in self._pairs if port is not None and port in map(_port_of, each.listens)
        ]
        host = _host_of(connection.upstream)
        found = bound or [each for each in self._pairs if each.host == host]
        return found[0].name if len(found) == 1 else ""


def _host_of(upstream: str) -> str:
    """Return the host of an upstream, of which the session has a description: `agent (port 80)`."""
    return split_address(upstream.partition(" ")[0])[0]


def _port_of(address: str) -> int | None:
    return split_address(address)[1]


def _address_name(connection: Connection, agent: str) -> str:
    """Return `host:port` and base path of the agent, or the program of a stdio agent."""
    if connection.kind == "stdio":
        return agent.split(" ")[0].rpartition("/")[2]
    scheme, mark, place = agent.rpartition("://")
    authority, slash, path = place.partition("/")
    host, port = split_address(f"{scheme}{mark}{authority}")
    if not host or port is None:
        return agent
    return f"{format_address(host, port)}{slash}{path}"


def is_service_named(environ: Mapping[str, str]) -> bool:
    """Whether the user has named the service of all spans in the standard variables."""
    return SERVICE_NAME in environment_attributes(environ)


def environment_attributes(environ: Mapping[str, str]) -> Attributes:
    """Return the attributes of the resource in `OTEL_RESOURCE_ATTRIBUTES` and
    `OTEL_SERVICE_NAME`."""
    made: Attributes = {}
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            made[name.strip()] = unquote(value.strip())
    if environ.get("OTEL_SERVICE_NAME"):
        made[SERVICE_NAME] = environ["OTEL_SERVICE_NAME"]
    return made


def session_resource(session: SessionRow, environ: Mapping[str, str]) -> Attributes:
    """Return the resource of a session, with the standard variables applied. Its service is the
    proxy."""
    tool, _, version = session.facts.tool.partition(" ")
    tool = tool or "a2a-proxy"
    made: Attributes = {
        SERVICE_NAME: tool,
        "telemetry.distro.name": tool,
        "a2a_proxy.session.id": session.facts.uuid,
    }
    if version:
        made["telemetry.distro.version"] = version
    if session.complete:
        made["a2a_proxy.capture.complete"] = not session.missing_text
        made["a2a_proxy.capture.missing_bytes"] = session.lost
    return made | environment_attributes(environ)
