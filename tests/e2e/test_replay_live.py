"""Live conversations played back to grpc.aio: the client's part of each story ends as it did with the agent.

The stories are those of `tests/peers/live`, as the samples have them; each is replayed alone. Then the approval loop
against clients that are faster, slower or other than the recorded one: each has its outcome, and nothing hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from a2a_proxy.recording.cassette import open_any
from a2a_proxy.replay.core.options import Options
from a2a_proxy.replay.core.script import Script
from a2a_proxy.replay.load import load
from a2a_proxy.replay.serve.mock import Mock
from peers.live.agent import STORY
from peers.live.client import LiveClient, LiveStream
from peers.live.payloads import send
from peers.live.proposals import PROPOSALS
from peers.live.stories import STORIES, states

SAMPLES = Path(__file__).parents[2] / "recordings"
NAMES = {name: story for story in (*STORIES, *PROPOSALS) for name in [story.name]}
TOLD = {
    "live-bidi": [
        *("approval", "approval-closed", "configured", "lost", "over", "refused", "shared", "watched", "answered"),
        *("unknown", "idle", "cancelled", "packed"),
    ],
    "live-1975": ["talk"],
    "live-2153": ["uplink"],
}
SECONDS = 60


class Absent:
    """In the place of the agent that the stories' clients wait for: the mock has whatever was written."""

    async def has(self, _octets: bytes) -> None:
        """It has."""

    def signal(self, _name: str) -> asyncio.Event:
        """Whatever it signals has happened."""
        event = asyncio.Event()
        event.set()
        return event


def script(sample: str, story: str) -> Script:
    """The calls of one story."""
    with open_any(SAMPLES / f"{sample}.a2a.jsonl") as recording:
        whole = load(recording)
    calls = (call for call in whole.calls if (STORY.encode(), story.encode()) in call.headers)
    return replace(whole, calls=tuple(calls))


@contextlib.asynccontextmanager
async def playing(sample: str, story: str, **options: Any) -> AsyncIterator[tuple[Mock, LiveClient]]:
    """A mock of one story and a client of it."""
    mock = Mock(script(sample, story), Options(**options))
    await mock.start()
    absent: Any = Absent()
    client = LiveClient(mock.address, absent)
    try:
        async with asyncio.timeout(SECONDS):
            yield mock, client
    finally:
        await client.close()
        await mock.stop()


@pytest.mark.parametrize(("sample", "story"), [(sample, story) for sample in TOLD for story in TOLD[sample]])
async def test_the_story_ends_as_it_did(sample: str, story: str) -> None:
    """What the client's part asserts of states, ids, order and statuses holds; no miss, and nothing left over."""
    async with playing(sample, story) as (mock, client):
        await NAMES[story].client(client)
    assert [miss.text() for miss in mock.player.misses] == []
    assert [call.place for call in mock.player.unused()] == []


ANSWERS = ("to Frankfurt", "yes, go on")


async def ending(stream: LiveStream) -> tuple[list[str], grpc.StatusCode]:
    """What is still heard, and the status."""
    return states(await stream.hear_out()), await stream.code()


async def test_a_fast_client() -> None:
    """All answers at once, before they are asked for: the agent's words come in order, none before its question."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        for text in ("deploy it", *ANSWERS):
            await stream.say(send(text))
        heard, code = await ending(stream)
    expected = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "WORKING", "AUTH_REQUIRED", "WORKING", "COMPLETED"]
    assert (heard, code) == (expected, grpc.StatusCode.OK)
    assert mock.player.misses == []


async def test_a_slow_client() -> None:
    """The clock stands still until it answers; nothing is dropped."""
    async with playing("live-bidi", "approval", speed=10.0) as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        assert states(await stream.hears(3))[-1] == "INPUT_REQUIRED"
        for text in ANSWERS:
            waiting = asyncio.create_task(stream.hear())
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done, "it spoke before it was answered"
            await stream.say(send(text))
            await waiting
            if text == ANSWERS[0]:
                await stream.hear()
        _, code = await ending(stream)
    assert (code, mock.player.misses) == (grpc.StatusCode.OK, [])


async def test_a_client_that_says_something_else() -> None:
    """The call ends with a miss that names the line and what differs in it."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        await stream.say(send("to Paris"))
        heard, code = await ending(stream)
    (miss,) = mock.player.misses
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert miss.kind == "diverged"
    assert 'recorded "to Frankfurt", asked "to Paris"' in miss.text()


async def test_a_lenient_mock_goes_on() -> None:
    """The same client, told of and served all the same."""
    async with playing("live-bidi", "approval", lenient=True) as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        for text in ("to Paris", ANSWERS[1]):
            await stream.say(send(text))
        heard, code = await ending(stream)
    assert (heard[-1], code) == ("COMPLETED", grpc.StatusCode.OK)
    assert (len(mock.player.misses), len(mock.player.loose)) == (0, 1)


async def test_a_client_that_half_closes_early() -> None:
    """It can never say what the agent waits for: the call ends at once, and the miss says so."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        await stream.half_close()
        heard, code = await ending(stream)
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert mock.player.misses
    assert all("half-closed" in miss.text() for miss in mock.player.misses)


async def test_a_client_that_half_closes_after_its_last_word() -> None:
    """The recorded one did not: the agent goes on to its end."""
    async with playing("live-bidi", "approval") as (_, client):
        stream = client.live("approval")
        for text in ("deploy it", *ANSWERS):
            await stream.say(send(text))
        await stream.half_close()
        heard, code = await ending(stream)
    assert (heard[-1], code) == ("COMPLETED", grpc.StatusCode.OK)


async def test_a_client_that_never_answers() -> None:
    """Patience ends, and with it the call."""
    async with playing("live-bidi", "approval", patience=200_000_000) as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        heard, code = await ending(stream)
    (miss,) = mock.player.misses
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert "nothing came" in miss.text()


async def test_a_client_that_leaves() -> None:
    """What was not sent by then is not missing."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        stream.cancel()
        assert await stream.code() is grpc.StatusCode.CANCELLED
    assert mock.player.misses == []
