"""`a2a-proxy --hook`: hooks get live traffic, never delay it, and are summarized at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_cli import Agent, Proxy, call, run, until, until_dead
from support_hooks import install, methods, noted, write_hooks

Start = Callable[..., Proxy]


@pytest.fixture
def hooks(tmp_path: Path) -> dict[str, str]:
    """Hooks that a proxy finds; one of them is installed."""
    environment = write_hooks(tmp_path / "hooks")
    install(tmp_path / "hooks", "notes", "noting:Notes")
    return environment


def proxied(proxy: Start, agent: Agent, hooks: dict[str, str], *words: object) -> Proxy:
    """A proxy with these words that listens."""
    path = agent_path(hooks)
    one = proxy(
        "--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", path, *words, **hooks
    )
    one.addresses()
    return one


def agent_path(hooks: dict[str, str]) -> Path:
    return Path(hooks["HOOKED"]).parent.parent / "r.db"


def test_a_hook_sees_live_traffic(proxy: Start, agent: Agent, hooks: dict[str, str]) -> None:
    """As it passes; at the end it has seen all that is recorded, and the console says how many
    calls that were. The same hook, called afterwards for the recording, notes down the same."""
    one = proxied(proxy, agent, hooks, "--hook", "notes")
    address = one.addresses()[0]
    call(address)
    until(lambda: "on_exchange_end" in methods(hooks))
    call(address, "GetTask")
    assert one.stop() == 0
    live = noted(hooks)
    with Recording(agent_path(hooks)) as recording:
        counts = recording.count_rows()
    names = [each["method"] for each in live]
    assert (names[0], names[-1]) == ("start", "close")
    assert (names.count("on_frame"), names.count("on_exchange_end")) == (counts.frames, 2)
    *_, summary, look = one.err.splitlines()
    assert f"a2a-proxy: hook notes: {len(live)} calls" in one.err.splitlines()
    assert "recorded 2 exchanges" in summary + look
    Path(hooks["HOOKED"]).unlink()
    done = run(one.state, "a2a-inspect", "plugins", agent_path(hooks), "--hook", "notes", **hooks)
    assert (done.code, done.err.splitlines()) == (
        0,
        [f"a2a-inspect: hook notes: {len(live)} calls"],
    )
    later = noted(hooks)
    assert [each for each in later if each["method"] == "on_frame"] == [
        each for each in live if each["method"] == "on_frame"
    ]
    assert sorted(map(str, later[1:])) == sorted(map(str, live[1:]))


def test_a_spinning_hook_delays_neither_traffic_nor_recording(
    proxy: Start, agent: Agent, hooks: dict[str, str]
) -> None:
    """Traffic and recording go on, another hook sees everything; a second Ctrl-C does not wait for
    it. What it has not seen is told with the command that calls it for that."""
    one = proxied(proxy, agent, hooks, "--hook", "noting:Spins", "--hook", "noting:Notes")
    address = one.addresses()[0]
    for _ in range(3):
        call(address)
    until(lambda: methods(hooks).count("on_exchange_end") == 3)
    until(lambda: any("spins" in each for each in noted(hooks)))
    one.interrupt()
    until(lambda: "stopping: waiting for hook noting:Spins" in one.err)
    one.interrupt()
    assert one.wait() == 0
    with Recording(agent_path(hooks)) as recording:
        counts = recording.count_rows()
    lines = one.err.splitlines()
    notes = (
        "a2a-proxy: warning: hook noting:Spins is slow: "
        f"{counts.frames} frames behind, given up; 1 call"
    )
    assert notes in lines
    again = f"a2a-inspect plugins {agent_path(hooks)} --hook noting:Spins"
    assert (
        lines[lines.index(notes) + 1]
        == f"a2a-proxy: hint: call it for the whole recording: {again}"
    )
    assert "capture complete: yes" in one.err
    assert counts.exchanges == 3


def test_failing_hooks_are_reported_and_calls_are_answered(
    proxy: Start, agent: Agent, hooks: dict[str, str]
) -> None:
    """One cannot be imported, one raises, one exits: each is reported, all calls are answered, the
    exit code is 0."""
    names = ("broken:Hook", "noting:Fails", "noting:AlwaysDies")
    words = [word for name in names for word in ("--hook", name)]
    one = proxied(proxy, agent, hooks, *words)
    call(one.addresses()[0])
    until(lambda: "died 4 times" in one.err)
    until(lambda: "broken:Hook cannot be loaded" in one.err)
    until(lambda: "on_exchange_end" in methods(hooks))  # of the one that goes on
    assert one.stop() == 0
    assert "hook broken:Hook cannot be loaded: ModuleNotFoundError" in one.err
    assert one.err.count("noting:Fails: on_frame failed: ValueError: no 0") == 1
    assert "hook noting:Fails: " in one.err
    assert "of them failed" in one.err
    assert "hook noting:AlwaysDies died: " in one.err
    assert "Traceback" not in one.err
    assert "1 ok" in one.err


def test_hook_reports_are_json_lines(proxy: Start, agent: Agent, hooks: dict[str, str]) -> None:
    """One object at the end, before the summary."""
    one = proxied(proxy, agent, hooks, "--hook", "noting:Fails", "--log-format", "json")
    call(one.addresses()[0])
    until(
        lambda: "on_exchange_end" in methods(hooks)
    )  # a stop does not wait long for a process that begins
    assert one.stop() == 0
    events = [json.loads(line) for line in one.out.splitlines()]
    (event,) = [each for each in events if each["event"] == "hook"]
    assert {name: event[name] for name in ("name", "outcome", "behind_frames")} == {
        "name": "noting:Fails",
        "outcome": "done",
        "behind_frames": 0,
    }
    assert 0 < event["errors"] < event["calls"]
    assert events[-1]["event"] == "summary"


@pytest.mark.parametrize(
    ("names", "message", "hint"),
    [
        (
            ["note"],
            "no hook is named 'note'; similar: notes",
            "list all hooks: a2a-inspect plugins",
        ),
        (
            ["nothing:At"],
            "hook nothing:At: no module is named nothing",
            "put the folder of nothing on PYTHONPATH",
        ),
        (["notes", "notes"], "--hook notes is given twice", "leave one of them out"),
    ],
)
def test_an_unknown_hook_is_refused(
    hooks: dict[str, str], tmp_path: Path, names: list[str], message: str, hint: str
) -> None:
    """Refused before anything is made, by both commands."""
    words = [word for name in names for word in ("--hook", name)]
    line = ("--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:1", "--record", tmp_path / "r.db")
    done = run(tmp_path / "state", "a2a-proxy", *line, *words, **hooks)
    assert (done.code, done.err.splitlines()) == (
        2,
        [f"a2a-proxy: error: {message}", f"a2a-proxy: hint: {hint}"],
    )
    assert not (tmp_path / "r.db").exists()
    assert not (tmp_path / "state").exists()
    done = run(tmp_path / "state", "a2a-inspect", "plugins", tmp_path / "r.db", *words, **hooks)
    assert (done.code, done.err.splitlines()[0]) == (2, f"a2a-inspect: error: {message}")


def test_a_killed_proxy_leaves_no_hook_behind(
    proxy: Start, agent: Agent, hooks: dict[str, str]
) -> None:
    """A proxy that is killed leaves no hook behind."""
    one = proxied(proxy, agent, hooks, "--hook", "notes")
    pid = until(lambda: noted(hooks))[0]["pid"]
    one.process.kill()
    until_dead(pid)
