"""Live conversations replayed to grpc.aio clients: the client's part of each story ends as it did
with the agent.

The stories are those of `tests/peers/live` in the samples; each is replayed alone. All of them are
also run, recorded and replayed: the client's transcript must be the same. Then the approval loop
with clients that are faster or slower than the recorded one, or differ from it: each has a defined
outcome, and nothing hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from a2a_proto import from_dict
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from peers.live.agent import STORY, LiveAgent
from peers.live.client import LiveClient, LiveStream
from peers.live.faults import FAULTS
from peers.live.payloads import card, send
from peers.live.proposals import PROPOSALS
from peers.live.stories import STORIES, states
from peers.live.story import parts
from support_proxy import Proxy

SAMPLES = Path(__file__).parents[2] / "recordings"
EVERY = [*STORIES, *PROPOSALS, *FAULTS]
NAMES = {story.name: story for story in EVERY}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TOLD = {
    "live-bidi": [
        *(
            "approval",
            "approval-closed",
            "configured",
            "lost",
            "over",
            "refused",
            "shared",
            "watched",
            "answered",
        ),
        *("unknown", "idle", "cancelled", "packed"),
    ],
    "live-1975": ["talk"],
    "live-2153": ["uplink"],
}
SECONDS = 60


class Absent:
    """Replaces the agent that the stories' clients wait for: the mock has received every written
    message."""

    async def has(self, _bytes: bytes) -> None:
        """Do nothing."""

    def signal(self, _name: str) -> asyncio.Event:
        """Return an event that is set."""
        event = asyncio.Event()
        event.set()
        return event


def script(sample: str, story: str) -> ReplayScript:
    """Return the calls of one story."""
    with open_recording_or_cassette(SAMPLES / f"{sample}.a2a.jsonl") as recording:
        return of_story(load_script(recording), story)


def of_story(whole: ReplayScript, story: str) -> ReplayScript:
    """Return the calls that belong to a story."""
    calls = (call for call in whole.calls if (STORY.encode(), story.encode()) in call.headers)
    return replace(whole, calls=tuple(calls))


def playing(
    sample: str, story: str, **options: Any
) -> AbstractAsyncContextManager[tuple[MockServer, LiveClient]]:
    """Run a mock of one story of a sample, and a client of it."""
    return serving(script(sample, story), **options)


@contextlib.asynccontextmanager
async def serving(
    told: ReplayScript, version: str = "1.0", **options: Any
) -> AsyncIterator[tuple[MockServer, LiveClient]]:
    """Run a mock and a client of it."""
    mock = MockServer(told, ReplayOptions(**options))
    await mock.start()
    absent: Any = Absent()
    client = LiveClient(mock.address, absent, version)
    try:
        async with asyncio.timeout(SECONDS):
            yield mock, client
    finally:
        await client.close()
        await mock.stop()


@pytest.mark.parametrize(
    ("sample", "story"), [(sample, story) for sample in TOLD for story in TOLD[sample]]
)
async def test_each_story_ends_as_recorded(sample: str, story: str) -> None:
    """The client's assertions about states, ids, order and statuses hold; there is no miss, and no
    call is left."""
    async with playing(sample, story) as (mock, client):
        await NAMES[story].client(client)
    assert [miss.full_text() for miss in mock.player.misses] == []
    assert [call.place for call in mock.player.unused_calls()] == []


Transcripts = dict[str, list[list[Any]]]
"""By story: the messages that the client of each stream received, and the status."""


async def telling(folder: Path) -> Transcripts:
    """Run every story with its client, one after another, through a proxy that records them."""
    agent = LiveAgent(parts(EVERY), card(streaming=True, bidiStreaming=True))
    # The agent that keeps a stream open need not wait for the recorder's finding.
    agent.signal("lingering: noticed").set()
    between = Proxy(folder, await agent.start(), "")
    await asyncio.to_thread(between.start)
    heard: Transcripts = {}
    try:
        for story in EVERY:
            client = LiveClient(between.address, agent, story.version)
            await client.ready()  # so that streams that are opened together keep their order
            await story.client(client)
            await client.close()
            heard[story.name] = client.transcript
        await asyncio.to_thread(between.stop)
    finally:
        await asyncio.to_thread(between.kill)
        await agent.stop()
    return heard


def plain(transcript: list[list[Any]]) -> Any:
    """Return the transcript without differences between runs: identifiers become numbers in order
    of appearance."""
    known: dict[str, str] = {}
    text = UUID.sub(
        lambda found: known.setdefault(found[0], f"id-{len(known)}"), json.dumps(transcript)
    )
    return json.loads(text)


@pytest.mark.soak
async def test_a_client_receives_what_the_agent_sent(tmp_path: Path) -> None:
    """Every story, also those in which the agent breaks rules: contents, order and statuses are
    equal, and no call is left."""
    heard = await telling(tmp_path)
    with Recording(tmp_path / "recording.a2a") as recording:
        whole = load_script(recording)
    for story in EVERY:
        async with serving(of_story(whole, story.name), story.version, keep_times=True) as (
            mock,
            client,
        ):
            await client.ready()
            await story.client(client)
        assert (story.name, plain(client.transcript)) == (story.name, plain(heard[story.name]))
        assert [miss.full_text() for miss in mock.player.misses] == []
        assert [call.place for call in mock.player.unused_calls()] == []


ANSWERS = ("to Frankfurt", "yes, go on")


async def ending(stream: LiveStream) -> tuple[list[str], grpc.StatusCode]:
    """Read the remaining messages and return them with the status."""
    return states(await stream.hear_out()), await stream.code()


async def test_a_fast_client() -> None:
    """The client sends all answers before the questions: the agent's messages arrive in order, none
    before its question."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        for text in ("deploy it", *ANSWERS):
            await stream.say(send(text))
        heard, code = await ending(stream)
    expected = [
        "SUBMITTED",
        "WORKING",
        "INPUT_REQUIRED",
        "WORKING",
        "AUTH_REQUIRED",
        "WORKING",
        "COMPLETED",
    ]
    assert (heard, code) == (expected, grpc.StatusCode.OK)
    assert mock.player.misses == []


async def test_a_slow_client() -> None:
    """The clock stops until the client answers; no message is dropped."""
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


async def test_a_diverging_client_gets_a_miss() -> None:
    """The call ends with a miss that names the line and the difference."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        await stream.say(send("to Paris"))
        heard, code = await ending(stream)
    (miss,) = mock.player.misses
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert miss.kind == "diverged"
    assert 'recorded "to Frankfurt", requested "to Paris"' in miss.full_text()


async def test_a_lenient_mock_serves_a_diverging_client() -> None:
    """The divergence is reported and the client is served."""
    async with playing("live-bidi", "approval", lenient=True) as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        for text in ("to Paris", ANSWERS[1]):
            await stream.say(send(text))
        heard, code = await ending(stream)
    assert (heard[-1], code) == ("COMPLETED", grpc.StatusCode.OK)
    assert (len(mock.player.misses), len(mock.player.allowed_misses)) == (0, 1)


async def test_an_early_half_close_ends_the_call_with_a_miss() -> None:
    """The client can no longer send the message that the agent waits for: the call ends at once
    with a miss that says so."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        await stream.half_close()
        heard, code = await ending(stream)
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert mock.player.misses
    assert all("half-closed" in miss.full_text() for miss in mock.player.misses)


async def test_a_half_close_after_the_last_message_is_served() -> None:
    """The recorded client did not half-close: the agent continues to its end."""
    async with playing("live-bidi", "approval") as (_, client):
        stream = client.live("approval")
        for text in ("deploy it", *ANSWERS):
            await stream.say(send(text))
        await stream.half_close()
        heard, code = await ending(stream)
    assert (heard[-1], code) == ("COMPLETED", grpc.StatusCode.OK)


async def test_a_silent_client_times_out() -> None:
    """The call ends after the timeout."""
    async with playing("live-bidi", "approval", patience=1_000_000_000) as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        heard, code = await ending(stream)
    (miss,) = mock.player.misses
    assert (heard, code) == ([], grpc.StatusCode.FAILED_PRECONDITION)
    assert "the client sent nothing" in miss.full_text()


async def test_a_disconnect_is_no_miss() -> None:
    """A message that was not due before the disconnect is not reported as missing."""
    async with playing("live-bidi", "approval") as (mock, client):
        stream = client.live("approval")
        await stream.say(send("deploy it"))
        await stream.hears(3)
        stream.cancel()
        assert await stream.code() is grpc.StatusCode.CANCELLED
    assert mock.player.misses == []


async def _greet_early(requests: AsyncIterator[bytes], context: Any) -> None:
    """Send initial metadata before the client's first message; refuse a call without a message."""
    await context.send_initial_metadata((("x-agent", "early"),))
    async for _ in requests:
        await context.write(
            from_dict("1.0", "StreamResponse", status_update("COMPLETED")).SerializeToString()
        )
        return
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no message")


def status_update(state: str) -> dict[str, Any]:
    """Return a status event."""
    return {
        "statusUpdate": {
            "taskId": "t-1",
            "contextId": "c-1",
            "status": {"state": f"TASK_STATE_{state}"},
        }
    }


async def _call_early(address: str) -> list[Any]:
    """Make two live calls that wait for the initial metadata; return what each received."""
    seen: list[Any] = []
    async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(SECONDS):
        for says_something in (True, False):
            call = channel.stream_stream("/lf.a2a.v1.A2AService/SendLiveMessage")(
                metadata=(("a2a-version", "1.0"),)
            )
            seen.append(dict(await call.initial_metadata()).get("x-agent"))
            if says_something:
                await call.write(
                    from_dict("1.0", "SendMessageRequest", send("hello")).SerializeToString()
                )
                seen.append(await call.read())
            await call.done_writing()
            seen.append(await call.code())
    return seen


async def test_initial_metadata_comes_before_the_first_message(tmp_path: Path) -> None:
    """A client that waits for it is served, and a half-close without a message finds its recorded
    status."""
    agent = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(_greet_early)
    agent.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "lf.a2a.v1.A2AService", {"SendLiveMessage": handler}
            ),
        )
    )
    port = agent.add_insecure_port("127.0.0.1:0")
    await agent.start()
    between = Proxy(tmp_path, f"127.0.0.1:{port}", "")
    await asyncio.to_thread(between.start)
    try:
        seen = await _call_early(between.address)
        await asyncio.to_thread(between.stop)
    finally:
        await asyncio.to_thread(between.kill)
        await agent.stop(None)
    assert [seen[0], *seen[2:]] == [
        "early",
        grpc.StatusCode.OK,
        "early",
        grpc.StatusCode.INVALID_ARGUMENT,
    ]
    with Recording(tmp_path / "recording.a2a") as recording:
        mock = MockServer(load_script(recording), ReplayOptions(keep_times=True))
    await mock.start()
    try:
        assert await _call_early(mock.address) == seen
    finally:
        await mock.stop()
    assert (mock.player.misses, mock.player.unused_calls()) == ([], [])
