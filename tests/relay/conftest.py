from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from a2a_proxy.relay import connection
from a2a_proxy.relay.run import loop_factory
from support_relay import SECONDS, Story


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the relay allows a slow peer is not what these tests are about: a slow machine gets
    more."""
    for name in ("SILENT_CLIENT_SECONDS", "FLUSH_SECONDS", "REFUSAL_SECONDS", "LINGER_SECONDS"):
        monkeypatch.setattr(connection, name, SECONDS)


@pytest.fixture(params=["uvloop", "asyncio"])
def play(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Runs a story on each of the two event loops."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    factory = loop_factory() if request.param == "uvloop" else asyncio.new_event_loop

    def run(story: Story) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(story, SECONDS))

    return run
