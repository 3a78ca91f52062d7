"""The live agent: whether it accepts connections, the interfaces of its card, and the start of a
stdio agent."""

import asyncio
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.drive.plan import BINDINGS
from a2a_proxy.drive.stdio import StdioTransport
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.bindings.card import WELL_KNOWN_PATHS, read_card
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.session_facts import CardFacts, card_facts
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.relay.edits.card import CardUrl
from a2a_proxy.relay.edits.card_urls import CardAddress, is_local, parse_card_url
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tls import HTTP1, Tls, Trust

_CONNECT_SECONDS = 5.0
"""Seconds that a connection, or a card, may take."""
_PROXY_CODE = "from a2a_proxy.cli.main import main; main()"
_RECORD_SECONDS = 60.0
"""Seconds that its recorder may take to finish."""


class AgentAddress(msgspec.Struct):
    """The addresses and interfaces of the live agent."""

    upstreams: list[Upstream]
    """Each gets a listener of the proxy; the first is the one that the user named."""
    grpc: Upstream | None = None
    interfaces: dict[Binding, tuple[int, str]] = {}
    """For each binding the index of its upstream, and the path of its interface."""
    versions: dict[Binding, frozenset[Dialect]] = {}
    """The dialects that the card offers on a binding."""
    notes: list[str] = []


async def find_agent(upstream: str, grpc: str, trust: Trust) -> AgentAddress:
    """Connect to the agent, and read its card if it has one.

    Raises:
        UserError: an address is invalid, or no agent answers there.
    """
    main_upstream = Upstream.parse(upstream)
    other = Upstream.parse(grpc) if grpc else None
    context = await Tls(trust).get_context((HTTP1,))
    for each in filter(None, (main_upstream, other)):
        await _check_connection(each)
    agent = AgentAddress([main_upstream], other, {}, {}, [])
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=_CONNECT_SECONDS),
    ) as http:
        for path in WELL_KNOWN_PATHS:
            card = await _fetch_card(
                http, f"http{'s' if main_upstream.tls else ''}://{main_upstream.address}{path}"
            )
            if card is not None:
                _add_card_interfaces(agent, main_upstream, card)
                return agent
    agent.notes.append(f"{main_upstream.text} has no agent card: calls go to the recorded paths")
    return agent


async def _check_connection(upstream: Upstream) -> None:
    """Raises UserError if the upstream accepts no connection."""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(upstream.host, upstream.port)
    except TimeoutError:
        raise UserError(
            f"cannot reach {upstream.text}: no answer", "check the host and the port"
        ) from None
    except OSError as wrong:
        why = (
            "connection refused"
            if isinstance(wrong, ConnectionRefusedError)
            else (wrong.strerror or str(wrong))
        )
        hint = f"start the agent, or name its port: --upstream {upstream.host}:PORT"
        raise UserError(f"cannot reach {upstream.text}: {why.lower()}", hint) from wrong
    writer.close()


async def _fetch_card(http: aiohttp.ClientSession, url: str) -> CardFacts | None:
    try:
        async with http.get(url) as response:
            card = read_card(await response.read()) if response.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None
    return card_facts(card) if card is not None else None


def _add_card_interfaces(agent: AgentAddress, main_upstream: Upstream, card: CardFacts) -> None:
    """Add the card's interfaces, the first of each binding; URLs on other hosts are noted, not
    used."""
    elsewhere: list[str] = []
    for interface in card.interfaces:
        binding = BINDINGS.get(interface.binding.lower())
        place = parse_card_url(CardUrl(interface.url, interface.binding))
        if binding is None or place is None:
            continue
        dialect = dialect_of_version(interface.version or card.version)
        if dialect is not Dialect.UNKNOWN:
            agent.versions[binding] = agent.versions.get(binding, frozenset()) | {dialect}
        if not _is_same_host(place, main_upstream):
            elsewhere.append(interface.url)
        elif binding is Binding.GRPC:
            agent.grpc = agent.grpc or _upstream_at(place, main_upstream)
        elif binding not in agent.interfaces:
            agent.interfaces[binding] = (
                _upstream_index(agent, place, main_upstream),
                urlsplit(interface.url).path,
            )
    if elsewhere:
        urls = make_visible(", ".join(dict.fromkeys(elsewhere)))
        agent.notes.append(
            f"the card of {main_upstream.text} lists URLs on other hosts, which are not used: "
            f"{urls}"
        )


def _upstream_index(agent: AgentAddress, url: CardAddress, main_upstream: Upstream) -> int:
    """Return the index of the upstream of an HTTP interface."""
    if url.port == main_upstream.port:
        return 0
    there = _upstream_at(url, main_upstream)
    if there not in agent.upstreams:
        agent.upstreams.append(there)
    return agent.upstreams.index(there)


def _upstream_at(url: CardAddress, main_upstream: Upstream) -> Upstream:
    tls = main_upstream.tls if url.tls is None else url.tls
    address = f"[{main_upstream.host}]" if ":" in main_upstream.host else main_upstream.host
    return Upstream.parse(f"{'https' if tls else 'http'}://{address}:{url.port}")


def _is_same_host(url: CardAddress, main_upstream: Upstream) -> bool:
    return url.host == main_upstream.host.lower() or (
        is_local(url.host) and is_local(main_upstream.host.lower())
    )


def offered_dialects(agent: AgentAddress, binding: Binding) -> list[str]:
    """Return the dialects that the card offers on a binding, as words."""
    return sorted(str(dialect) for dialect in agent.versions.get(binding, ()))


def connect_stdio_agent(command: tuple[str, ...], record: Path) -> StdioTransport:
    """Return the transport to the agent. Raises UserError if the command does not exist."""
    if shutil.which(command[0]) is None:
        raise UserError(
            f"command not found: {command[0]}",
            "check the spelling and the PATH; no shell reads the command",
        )
    return StdioTransport(
        (sys.executable, "-c", _PROXY_CODE, "stdio", "--record", str(record), "--", *command)
    )


async def wait_until_recorded(record: Path, pid: int) -> None:
    """Wait until the recorder, which outlives the agent, has finished."""
    async with asyncio.timeout(_RECORD_SECONDS):
        while not await asyncio.to_thread(_is_recorded, record, pid):
            await asyncio.sleep(0.02)


def _is_recorded(record: Path, pid: int) -> bool:
    if not record.exists():
        return False
    try:
        with Recording(record) as recording:
            own = [
                session
                for session in recording.read_sessions()
                if session.facts.pid == pid and session.how
            ]
            return bool(own) and own[-1].facts.uuid not in file_layout.sessions_with_journal()
    except RecordingError:  # it is being created
        return False
