"""Both peers of a script over real sockets with the proxy between them, and the bytes that each
received."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import Direction
from support_conversation import Step
from support_relay import reset
from support_ways import Channel, Line, TlsChannel, Way, expected_requests

SECONDS = 120.0
"""Seconds after which a step has failed, also on a slow machine."""
DELIVERY_SECONDS = 0.05
"""Seconds for which one peer waits for the other's bytes before it continues: an editor may hold an
incomplete head."""


class Peer:
    """One end of a connection: the bytes that it sent and received, and its end. Without a channel
    it is not there yet, and does nothing."""

    def __init__(self, pause: float = 0.0) -> None:
        self.channel: Channel | None = None
        self.sent = bytearray()
        self.received = bytearray()
        self.finished = False
        """It has ended its side, with FIN and if it speaks TLS with close_notify."""
        self.broke = False
        """It has reset the connection itself."""
        self.ended = ""
        """`eof`, `reset` or `truncated` (FIN without close_notify), once the other end has ended;
        empty before."""
        self._pause = pause
        self._arrived = asyncio.Event()
        self._reader: asyncio.Future[None] | None = None

    def begin(self, channel: Channel) -> None:
        """Begin: the connection is there."""
        self.channel = channel
        self._reader = asyncio.ensure_future(self._read(channel))

    async def send(self, data: bytes) -> None:
        """Send bytes, as many as are accepted."""
        if self.finished or self.broke or self.channel is None:
            return
        self.sent += data
        try:
            async with asyncio.timeout(SECONDS):
                await self.channel.send(data)
        except (
            ssl.SSLEOFError
        ):  # OpenSSL sends nothing after the other end's FIN without close_notify
            del self.sent[len(self.sent) - len(data) :]
        except (ConnectionResetError, BrokenPipeError):
            self.ended = "reset"

    async def finish(self) -> None:
        """End this side."""
        if not self.finished and not self.broke and self.channel is not None:
            self.finished = True
            with contextlib.suppress(OSError):  # the other end reset the connection
                await self.channel.finish()

    async def reset(self) -> None:
        """Send RST."""
        if not self.broke and self.channel is not None:
            self.broke = True
            assert self._reader is not None
            await _cancel(self._reader)
            reset(self.channel.sock)

    async def has(self, size: int, seconds: float) -> None:
        """Wait until this many bytes have arrived, no more can arrive, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self.received) < size and not self.ended and not self.broke:
                    self._arrived.clear()
                    await self._arrived.wait()

    async def end(self, *others: asyncio.Future[Any]) -> None:
        """Wait until the other end has closed, or one of these has a result. Raises TimeoutError if
        it does not."""
        if self._reader is not None:
            async with asyncio.timeout(SECONDS):
                await asyncio.wait([self._reader, *others], return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Close the socket."""
        if self._reader is not None and self.channel is not None:
            await _cancel(self._reader)
            self.channel.sock.close()

    async def _read(self, channel: Channel) -> None:
        try:
            while data := await channel.receive():
                self.received += data
                self._arrived.set()
                if self._pause:
                    await asyncio.sleep(self._pause)
            self.ended = self.ended or "eof"
        except ssl.SSLEOFError:
            self.ended = self.ended or "truncated"
        except OSError:
            self.ended = "reset"
        self._arrived.set()


class Played:
    """The result of one script."""

    def __init__(self, line: Line, client: Peer, agent: Peer, *, notifies: bool) -> None:
        self.client, self.agent = client, agent
        self.notifies = notifies
        """Whether both end TLS with close_notify."""
        assert client.channel is not None
        host, port = client.channel.sock.getsockname()
        self.address = f"{host}:{port}"
        """The client's."""
        self.hangs = False
        """The proxy did not end a connection that both peers had ended."""
        self._way = line.way

    @property
    def refused(self) -> bool:
        """Return whether the proxy must answer the client itself, because the client uses HTTP/2
        and the agent's first byte cannot."""
        could = self.client.sent.startswith(PREFACE) and bytes(self.agent.sent[:1]) not in (
            b"",
            b"\0",
        )
        reads = not self._way.agent_has_tls
        return (
            could
            and reads
            and (not self.client.received or not self.agent.sent.startswith(self.client.received))
        )

    @property
    def broken(self) -> bool:
        """Return whether one of the peers reset the connection, so that bytes may be lost."""
        return self.client.broke or self.agent.broke

    @property
    def byte_count(self) -> int:
        """Return the number of bytes that both sent."""
        return len(self.client.sent) + len(self.agent.sent)

    @property
    def is_judged(self) -> bool:
        """Whether the requests can be predicted: false for some that a forward proxy may refuse or
        forward."""
        return self._way is not Way.ABSOLUTE or (
            expected_requests(bytes(self.client.sent))[1] and not self._may_upgrade
        )

    @property
    def recorded_sizes(self) -> tuple[int, int] | None:
        """The bytes of both directions that the recording must have; None if they are not known."""
        unknown = self.broken or self.refused or not self.is_judged or bool(self.problems())
        if (
            unknown
            or len(self.client.received) < len(self.agent.sent)
            or self.client.channel is None
        ):
            return None
        if self._way is Way.UNREAD:
            return (
                (self.client.channel.raw_sent, self.agent.channel.raw_sent)
                if self.agent.channel
                else None
            )
        wanted = self.wanted(self.client)
        return (
            (len(wanted), len(self.agent.sent)) if len(self.agent.received) == len(wanted) else None
        )

    @property
    def _may_upgrade(self) -> bool:
        return b" 101" in self.agent.sent

    def wanted(self, sender: Peer) -> bytes:
        """Return the bytes that the other peer must receive."""
        if sender is self.client and self._way is Way.ABSOLUTE:
            return expected_requests(bytes(sender.sent))[0]
        return bytes(sender.sent)

    def problems(self) -> list[str]:
        """Return the faults of the proxy; empty if there are none."""
        found = ["the connection was not ended"] if self.hangs else []
        for sender, receiver, name in (
            (self.client, self.agent, "agent"),
            (self.agent, self.client, "client"),
        ):
            if self.refused and name == "client":
                continue
            wanted, received = self.wanted(sender), bytes(receiver.received)
            if not self.is_judged:
                found += self._compare_unjudged(name, wanted, received)
                continue
            may_lose = self.broken or self.refused
            if received != (wanted[: len(received)] if may_lose else wanted):
                found.append(_difference(name, wanted, received))
            reset_follows = sender.broke and not sender.finished and not receiver.finished
            if (
                reset_follows
                and receiver.channel
                and receiver.ended != "reset"
                and not self.refused
            ):
                found.append(f"the {name} saw {receiver.ended or 'nothing'} instead of a reset")
            if not may_lose and receiver.ended == "reset":
                found.append(f"the {name} saw a reset that nobody sent")
            if not may_lose and isinstance(receiver.channel, TlsChannel):
                cuts = isinstance(sender.channel, TlsChannel) and not self.notifies
                if (receiver.ended == "truncated") is not cuts:
                    found.append(
                        f"the {name} saw {receiver.ended or 'nothing'}, the other peer sent "
                        f"{'no ' * cuts}close_notify"
                    )
        return found

    def _compare_unjudged(self, name: str, wanted: bytes, received: bytes) -> list[str]:
        """Return the difference in the part of a connection that can be predicted."""
        common = min(len(wanted), len(received))
        if name == "agent":
            is_equal = received[:common] == wanted[:common] and (
                self.broken or len(received) >= len(wanted)
            )
        elif self.client.sent.startswith(PREFACE):
            is_equal = True  # the proxy answers in HTTP/2
        else:
            begin = received.rfind(b"HTTP/1.1 400 ")
            answered = b"a2a-proxy" in received[begin:] or b"a client sent" in received[begin:]
            is_equal = wanted.startswith(received) or (
                begin >= 0 and answered and wanted.startswith(received[:begin])
            )
        return [] if is_equal else [_difference(name, wanted, received)]


async def play(
    steps: list[Step], line: Line, pause: float = 0.0, *, notifies: bool = True
) -> Played:
    """Play a script through the proxy. Each step waits briefly for the bytes that the other peer
    sent before it. In the end both peers finish, unless one has reset. With `pause` both pause for
    that many seconds after each read. Without `notifies` peers end TLS with FIN alone. Raises
    OSError, and TimeoutError if there is no connection."""
    client, agent = Peer(pause), Peer(pause)
    begin = next(
        (data for what, direction, data in steps if data and direction is Direction.TO_AGENT), b""
    )
    accepting = asyncio.ensure_future(line.accept(notifies=notifies))
    try:
        async with asyncio.timeout(SECONDS):
            client.begin(await line.connect(notifies=notifies, http2=begin[:3] == PREFACE[:3]))
            if not line.way.dials_late:
                agent.begin(await accepting)
        played = Played(line, client, agent, notifies=notifies)
        await _play_steps(steps, line, played, accepting)
    finally:
        await _cancel(accepting)
        await client.close()
        await agent.close()
    return played


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task that uses a socket, and wait until the event loop has forgotten the socket."""
    task.cancel()
    await asyncio.wait([task])


async def _play_steps(
    steps: list[Step], line: Line, played: Played, accepting: asyncio.Future[Channel]
) -> None:
    client, agent = played.client, played.agent
    peers = {Direction.TO_AGENT: client, Direction.TO_CLIENT: agent}
    last = Direction.TO_AGENT
    try:
        for what, direction, data in steps:
            sender, other = peers[direction], peers[direction.other]
            if agent.channel is None:
                if direction is not last and direction is Direction.TO_CLIENT:
                    await asyncio.wait([accepting], timeout=DELIVERY_SECONDS)
                await _accept(line, client, agent, accepting)
            if direction is not last or what == "reset":
                await _delivered(played)
            last = direction
            if what == "data":
                await sender.send(data)
            elif what == "eof":
                await sender.finish()
            elif sender.channel is not None:
                await sender.reset()
                break
            if sender.ended == "reset" or other.ended == "reset":
                break
        if agent.channel is None and not client.broke:
            await _accept(line, client, agent, accepting)
        for peer in (client, agent):
            await peer.finish()
        if agent.channel is None and not client.broke:
            await client.end(accepting)
            if accepting.done():  # the proxy forwards more than this test predicts
                agent.begin(await accepting)
                await agent.finish()
        for peer in (client, agent):
            await peer.end()
    except TimeoutError:
        played.hangs = True


async def _accept(
    line: Line, client: Peer, agent: Peer, accepting: asyncio.Future[Channel]
) -> None:
    """Accept the connection to the agent if the proxy must have dialled. Raises TimeoutError if it
    does not."""
    if accepting.done() or line.dials(bytes(client.sent)):
        async with asyncio.timeout(SECONDS):
            agent.begin(await accepting)


async def _delivered(played: Played) -> None:
    client, agent = played.client, played.agent
    if agent.channel is not None:
        await agent.has(len(played.wanted(client)), DELIVERY_SECONDS)
        await client.has(len(agent.sent), DELIVERY_SECONDS)


def _difference(name: str, sent: bytes, received: bytes) -> str:
    """Return the difference in words."""
    size = min(len(sent), len(received))
    at = next((i for i in range(size) if sent[i] != received[i]), size)
    return (
        f"the {name} received {len(received)} bytes of {len(sent)}, different from byte {at}: "
        f"sent {sent[at : at + 20]!r}, received {received[at : at + 20]!r}"
    )
