"""The built-in agent and client."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from a2a_proxy.cli.demo import run_demo
from a2a_proxy.demo.agent import DemoAgent
from a2a_proxy.demo.story import TravelAgent
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key


def _message(words: str, task: str = "") -> dict[str, object]:
    return {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": words}], "taskId": task}


def _kinds(events: list[dict[str, object]]) -> list[str]:
    return [next(iter(event)) for event in events]


def test_a_plan_is_streamed_in_chunks() -> None:
    """One artifact in three chunks, then the task is completed and holds all parts."""
    agent = TravelAgent()
    events = list(agent.answer_message(_message("Plan a day")))
    assert _kinds(events) == ["task", "statusUpdate", *["artifactUpdate"] * 3, "statusUpdate"]
    task = agent.find_task(events[0]["task"]["id"])
    assert task is not None
    assert task.status["state"] == "TASK_STATE_COMPLETED"
    assert len(task.as_json()["artifacts"][0]["parts"]) == 3


def test_booking_a_table_requires_input() -> None:
    """The first message ends in input-required, the follow-up on the same task completes it."""
    agent = TravelAgent()
    first, *_ = agent.answer_message(_message("Book a table"))
    task = first["task"]
    assert agent.find_task(task["id"]).status["state"] == "TASK_STATE_INPUT_REQUIRED"
    list(agent.answer_message(_message("four", task["id"])))
    assert agent.find_task(task["id"]).status["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [("GetTask", {"id": "nothing"}, -32001), ("Dance", {}, -32601)],
)
async def test_unknown_tasks_and_methods_are_protocol_errors(
    method: str, params: dict[str, str], code: int
) -> None:
    """Unknown tasks and methods are JSON-RPC errors."""
    agent = DemoAgent()
    await agent.start()
    try:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        url = f"http://127.0.0.1:{agent.http_port}/rpc"
        async with aiohttp.ClientSession() as http, http.post(url, json=call) as answer:
            assert (await answer.json())["error"]["code"] == code
    finally:
        await agent.stop()


def test_the_demo_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three bindings, three tasks, and no trace of the client's credential."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    file = tmp_path / "demo.a2a.db"
    assert run_demo(file) == 0
    with Recording(file) as recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
        states = [row.task.state for row in recording.read_tasks()]
        session = recording.read_sessions()[0]
    assert {exchange.binding.value for exchange in exchanges} == {"card", "jsonrpc", "rest", "grpc"}
    assert [exchange.error.split()[0] for exchange in exchanges if exchange.error] == [
        "TASK_NOT_FOUND"
    ]
    assert states == [3, 3, 3]
    assert session.complete == "complete"
    assert b"demo-credential" not in file.read_bytes()


def test_the_lossy_demo_has_exactly_the_lost_event_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that did not come, and the artifact that lacks it; nothing else is wrong with the
    demo."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    file = tmp_path / "demo.a2a.db"
    assert run_demo(file, lossy=True) == 0
    with Recording(file) as recording:
        found = [each.finding.rule for each in recording.read_findings()]
        (missed,) = [loss for row in recording.read_tasks() for loss in row.task.missed]
        healer = recording.read_exchange(make_key(1, missed.by))
    # A machine that stops everybody for half a second has latencies to tell of.
    assert [rule for rule in found if not rule.startswith("A2A-LAT-")] == [
        "A2A-GEN-001",
        "A2A-ART-006",
    ]
    assert (missed.first, missed.last) == (4, 4)
    assert healer is not None
    assert healer.exchange.operation == "GetTask"
