"""Generations as a user sees them: an agent with generations, a client that calls GetTask after a
gap, long polls and preconditions, on every binding, through the running proxy."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Support, Task
from a2a_proxy.recording.read.reader import Recording
from support_peers import Transcript, agent, run_client
from support_proxy import Proxy, inspect, proxy

BINDINGS = ("jsonrpc", "rest", "grpc")
SCENARIOS = ["gap", "poll", "precondition"]
HOLD = 2.5
"""Seconds for which the agent holds a long poll without a change: longer than the second after
which a call is shown."""
PROMPT, TRIES = 5.0, 4
"""Seconds within which a gap must be on the console, as the best of several attempts: a busy
machine delays some of them, a recorder that waits delays all. The benchmark `lag` measures the
delay on an idle machine."""


@dataclass(frozen=True)
class Talk:
    """The transcript of a client, the output of the proxy, and the recording."""

    binding: str
    seen: dict[str, Transcript]
    running: Proxy
    tasks: list[Task]

    def told(self, event: str) -> list[dict[str, Any]]:
        return self.running.said(event)

    def found(self) -> list[dict[str, Any]]:
        """Return the findings without those about latency, which a busy machine can cause."""
        return [each for each in self.told("finding") if not each["rule"].startswith("A2A-LAT-")]

    def delay(self, event: str) -> float:
        """Return the seconds from the client's receipt of the event after the gap to the console
        line."""
        after = next(
            e.at
            for e in self.seen["gap"].entries
            if e.event.get("artifactUpdate", {}).get("generation") == "5"
        )
        lines = zip(self.running.out, self.running.out_at, strict=True)
        return (next(at for line, at in lines if json.loads(line)["event"] == event) - after) / 1e9


@pytest.fixture(scope="module", params=BINDINGS)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Talk:
    """Run the conversation of one binding once for all tests."""
    return talking(tmp_path_factory.mktemp("talk"), request.param, SCENARIOS)


def talking(folder: Path, binding: str, scenarios: list[str]) -> Talk:
    with agent("generations", "--hold", str(HOLD)) as far:
        with proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target) as running:
            seen = asyncio.run(
                run_client("generations", binding, scenarios, running.base_url, running.address)
            )
            running.stop()
        with Recording(running.recording) as recording:
            tasks = [row.task for row in recording.read_tasks()]
        return Talk(binding, {each.scenario: each for each in seen}, running, tasks)


def best_delay(talk: Talk, event: str, tmp_path: Path) -> float:
    """Return the delay of this conversation, or the best of further ones if it was late."""
    delays = [talk.delay(event)]
    while min(delays) >= PROMPT and len(delays) < TRIES:
        folder = tmp_path / f"try-{len(delays)}"
        folder.mkdir()
        delays.append(talking(folder, talk.binding, ["gap"]).delay(event))
    return min(delays)


def test_a_gap_is_reported_at_once_as_one(talk: Talk, tmp_path: Path) -> None:
    found = [each for each in talk.told("finding") if each["rule"] == "A2A-GEN-001"]
    assert [each["summary"] for each in found] == ["generation 4 is missing: 3 is followed by 5"]
    delay = best_delay(talk, "finding", tmp_path)
    print(f"a gap was on the console {delay * 1000:.0f} ms after the client had the event after it")
    assert delay < PROMPT


def test_the_healing_of_a_gap_is_reported(talk: Talk, tmp_path: Path) -> None:
    (healed,) = talk.told("healed")
    assert (healed["first"], healed["last"], healed["operation"]) == (4, 4, "GetTask")
    assert healed["healed_at_generation"] == 5
    (gap,) = talk.found()  # there is no other fault in the whole conversation
    assert healed["exchange"] == gap["exchange"] != healed["healed_by"]
    assert best_delay(talk, "healed", tmp_path) < PROMPT


def test_the_recording_has_the_generations_of_the_task(talk: Talk) -> None:
    task = talk.tasks[0]
    assert (task.generation, task.seen, task.support) == (6, ((1, 3), (5, 6)), Support.YES)
    (missed,) = task.missed
    assert (missed.first, missed.last, missed.exchange, missed.by, missed.generation) == (
        4,
        4,
        1,
        2,
        5,
    )
    assert missed.at < missed.healed
    assert [each.missed for each in talk.tasks[1:]] == [(), ()]


def test_show_prints_the_gap_as_text_and_json(talk: Talk) -> None:
    running = talk.running
    shown = inspect(running.state, "show", running.recording)
    assert "generations 1-3 5-6, 4 missed on #1, healed by #2 GetTask at generation 5" in shown
    first, *_ = map(
        json.loads, inspect(running.state, "show", running.recording, "--json").splitlines()
    )
    assert first["task_generations"]["seen"] == [[1, 3], [5, 6]]
    assert first["task_generations"]["missed"][0]["healed_by"] == 2
    tasks = inspect(running.state, "ls", "--tasks", running.recording, "--json")
    assert json.loads(tasks.splitlines()[0])["generations"] == first["task_generations"]


def test_a_long_poll_waits(talk: Talk) -> None:
    """The console prints what it waits for, and the result."""
    polls = [each for each in talk.told("exchange") if each["current_generation"] is not None]
    waiting = [each for each in polls if each["live"]]
    assert {(each["waits"], each["outcome"]) for each in waiting} == {(True, "live")}
    assert (
        waiting[-1]["current_generation"] == 3
    )  # the others are answered within a second on an idle machine
    answered = [
        (each["current_generation"], each["generation"]) for each in polls if not each["live"]
    ]
    assert answered == [(1, 2), (2, 3), (3, 3)]
    shown = inspect(talk.running.state, "show", talk.running.recording)
    assert "waited for a generation above 2, got 3" in shown
    assert "waited for a generation above 3, still 3" in shown


def test_a_failed_precondition_is_reported(talk: Talk) -> None:
    (refused,) = [each for each in talk.told("exchange") if each["error"]]
    assert "TASK_GENERATION_MISMATCH" in refused["error"]
    assert refused["error"].endswith("the task has changed (expected generation 3, it is 5)")
    assert (refused["dialect"], refused["if_generation_match"]) == ("1.1", 3)
    assert list(talk.seen["precondition"].entries[-1].event) == ["refused"]


def test_the_console_describes_generations(tmp_path: Path) -> None:
    """The lines on the console during the conversation."""
    with (
        agent("generations", "--hold", str(HOLD)) as far,
        proxy(tmp_path, f"127.0.0.1:{far.http}", log_format="text") as running,
    ):
        asyncio.run(run_client("generations", "jsonrpc", ["gap", "poll"], running.base_url))
        running.stop()
    gap, healed = (
        next(number for number, line in enumerate(running.out) if re.search(words, line))
        for words in (
            (
                r"A2A-GEN-001 Generation gap  #1\.4 \(agent's event\)"
                r"( SendStreamingMessage)?  must act: agent  gen"
            ),
            "  healed  task ",
        )
    )
    assert gap < healed
    assert running.out[healed].endswith(
        "  generation 4, missed on #1: healed by #2 GetTask at generation 5"
    )
    assert [
        line
        for line in running.out
        if "  waits  " in line and line.endswith("for a generation above 3")
    ]
    assert [
        line for line in running.out if line.endswith("waited for a generation above 3, still 3")
    ]
