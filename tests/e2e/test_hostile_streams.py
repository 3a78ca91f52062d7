"""Hostile traffic passes through the real proxy byte for byte, and harms neither relay nor
recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_fuzz_round import Link, Round, Totals
from support_hostile_streams import HOSTILE_STREAMS, RECORDER_MIB, RELAY_MIB, Made
from support_player import play

SECONDS = 600.0
"""A recorder runs at low priority, so it takes long on a busy machine."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Round]:
    """Run a proxy that changes nothing and one with the usual options, for all streams."""
    found = Round(tmp_path_factory.mktemp("hostile"), Totals(), lanes=1)
    yield found
    found.kill()


async def recorded(link: Link, client: str) -> None:
    """Wait until the end of the connection from this address is in the recording."""
    async with asyncio.timeout(SECONDS):
        while True:
            with Recording(link.proxy.recording) as stored:
                if any(
                    row.connection.closed
                    for row in stored.read_connections()
                    if row.connection.client == client
                ):
                    return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("made", HOSTILE_STREAMS, ids=lambda made: made.__name__)
async def test_hostile_streams_pass_unchanged_and_harm_nothing(made: Made, running: Round) -> None:
    """Both peers receive all bytes and the end of the other; the same processes continue, with
    bounded memory."""
    script = made()
    for link in running.links:
        with link.line(0) as line:
            played = await play(script.steps, line)
            link.expect(line, played)
        assert played.problems() == []
        assert not played.refused
        await recorded(link, played.address)
        relay, recorder = link.memory()
        assert link.deaths() == []
        assert 0 < relay < RELAY_MIB
        assert 0 < recorder < RECORDER_MIB


def test_recordings_of_hostile_streams_are_sound(running: Round) -> None:
    """They are complete, contain all bytes of each connection, and can be read by `check`; the
    proxies printed nothing on stderr."""
    running.finish()
    assert running.totals.failures == []
