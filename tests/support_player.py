"""Both peers of a script over real sockets with the proxy between them, and the bytes that each received."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from a2a_proxy.model.chunk import Direction
from a2a_proxy.wire.detect import PREFACE
from support_conversation import Step
from support_relay import reset

SECONDS = 120.0
"""Seconds after which a step has failed, also on a slow machine."""
DELIVERY_SECONDS = 0.05
"""Seconds for which one peer waits for the other's bytes before it continues: an editor may hold an incomplete head."""
READ_SIZE = 1 << 16


class Peer:
    """One end of a connection: the bytes that it sent and received, and its end."""

    def __init__(self, sock: socket.socket, pause: float = 0.0) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.sent = bytearray()
        self.received = bytearray()
        self.finished = False
        """It has sent FIN."""
        self.broke = False
        """It has reset the connection itself."""
        self.ended = ""
        """`eof` or `reset`, once the other end has ended; empty before."""
        self._pause = pause
        self._arrived = asyncio.Event()
        self._reader = asyncio.ensure_future(self._read())

    async def send(self, data: bytes) -> None:
        """Send bytes, as many as are accepted."""
        if self.finished or self.broke:
            return
        self.sent += data
        try:
            async with asyncio.timeout(SECONDS):
                await asyncio.get_running_loop().sock_sendall(self.sock, data)
        except (ConnectionResetError, BrokenPipeError):
            self.ended = "reset"

    def finish(self) -> None:
        """Send FIN."""
        if not self.finished and not self.broke:
            self.finished = True
            with contextlib.suppress(OSError):  # the other end reset the connection
                self.sock.shutdown(socket.SHUT_WR)

    async def reset(self) -> None:
        """Send RST."""
        if not self.broke:
            self.broke = True
            self._reader.cancel()
            await asyncio.wait([self._reader])
            reset(self.sock)

    async def has(self, size: int, seconds: float) -> None:
        """Wait until this many bytes have arrived, no more can arrive, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self.received) < size and not self.ended and not self.broke:
                    self._arrived.clear()
                    await self._arrived.wait()

    async def end(self) -> None:
        """Wait until the other end has closed. Raises TimeoutError if it does not."""
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([self._reader])

    def close(self) -> None:
        """Close the socket."""
        self._reader.cancel()
        self.sock.close()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(self.sock, READ_SIZE):
                self.received += data
                self._arrived.set()
                if self._pause:
                    await asyncio.sleep(self._pause)
            self.ended = self.ended or "eof"
        except OSError:
            self.ended = "reset"
        self._arrived.set()


class Played:
    """The result of one script."""

    def __init__(self, client: Peer, agent: Peer) -> None:
        self.client, self.agent = client, agent
        host, port = client.sock.getsockname()
        self.address = f"{host}:{port}"
        """The client's."""
        self.hangs = False
        """The proxy did not end a connection that both peers had ended."""

    @property
    def refused(self) -> bool:
        """Return whether the proxy must answer the client itself, because the client uses HTTP/2 and the agent's first
        byte cannot."""
        could = self.client.sent.startswith(PREFACE) and bytes(self.agent.sent[:1]) not in (b"", b"\0")
        return could and (not self.client.received or not self.agent.sent.startswith(self.client.received))

    @property
    def broken(self) -> bool:
        """Return whether one of the peers reset the connection, so that bytes may be lost."""
        return self.client.broke or self.agent.broke

    @property
    def bytes(self) -> int:
        """Return the number of bytes that both sent."""
        return len(self.client.sent) + len(self.agent.sent)

    def problems(self) -> list[str]:
        """Return the faults of the proxy; empty if there are none."""
        found = ["the connection was not ended"] if self.hangs else []
        for sender, receiver, name in ((self.client, self.agent, "agent"), (self.agent, self.client, "client")):
            if self.refused and name == "client":
                continue
            wanted = sender.sent[: len(receiver.received)] if self.broken or self.refused else sender.sent
            if receiver.received != wanted:
                found.append(_difference(name, bytes(sender.sent), bytes(receiver.received)))
            reset_follows = sender.broke and not sender.finished and not receiver.finished
            if reset_follows and receiver.ended != "reset" and not self.refused:
                found.append(f"the {name} saw {receiver.ended or 'nothing'} instead of a reset")
            if not self.broken and not self.refused and receiver.ended == "reset":
                found.append(f"the {name} saw a reset that nobody sent")
        return found


async def play(steps: list[Step], port: int, agent_listener: socket.socket, pause: float = 0.0) -> Played:
    """Play a script through the proxy at `port`, whose agent is `agent_listener`. Each step waits briefly for the bytes
    that the other peer sent before it. In the end both peers finish, unless one has reset. With `pause` both pause for
    that many seconds after each read."""
    loop = asyncio.get_running_loop()
    to_proxy = socket.socket()
    to_proxy.setblocking(False)
    async with asyncio.timeout(SECONDS):
        await loop.sock_connect(to_proxy, ("127.0.0.1", port))
        from_proxy, _ = await loop.sock_accept(agent_listener)
    client, agent = Peer(to_proxy, pause), Peer(from_proxy, pause)
    played = Played(client, agent)
    peers = {Direction.TO_AGENT: client, Direction.TO_CLIENT: agent}
    last = Direction.TO_AGENT
    try:
        for what, direction, data in steps:
            sender, other = peers[direction], peers[direction.other]
            if direction is not last or what == "reset":
                await _delivered(client, agent)
            last = direction
            if what == "data":
                await sender.send(data)
            elif what == "eof":
                sender.finish()
            else:
                await sender.reset()
                break
            if sender.ended == "reset" or other.ended == "reset":
                break
        for peer in (client, agent):
            peer.finish()
        for peer in (client, agent):
            await peer.end()
    except TimeoutError:
        played.hangs = True
    finally:
        client.close()
        agent.close()
    return played


async def _delivered(client: Peer, agent: Peer) -> None:
    await agent.has(len(client.sent), DELIVERY_SECONDS)
    await client.has(len(agent.sent), DELIVERY_SECONDS)


def _difference(name: str, sent: bytes, received: bytes) -> str:
    """Return the difference in words."""
    size = min(len(sent), len(received))
    at = next((i for i in range(size) if sent[i] != received[i]), size)
    return (
        f"the {name} received {len(received)} bytes of {len(sent)}, different from byte {at}: "
        f"sent {sent[at : at + 20]!r}, received {received[at : at + 20]!r}"
    )
