"""Followers of the recording of `a2a-proxy stdio`: they start with it and end after it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import JournalFolder, SessionFile
from a2a_proxy.cli import stdio_followers
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.console import TextConsole
from a2a_proxy.cli.follower_config import FollowerOptions
from a2a_proxy.cli.stdio import stdio_config
from a2a_proxy.cli.stdio_followers import FollowersJob, run_job
from a2a_proxy.model.errors import UserError
from support_cli import SECONDS, until
from support_inspect import changes, exchange, request, writer
from support_otlp import http_backend
from support_recording import STARTED, facts
from support_stdio import CARD, Client, agent, wrapped


class Follower:
    """Stands for a supervisor and what it keeps: it is at the end when it was told to hurry."""

    def __init__(self, seen: list[str]) -> None:
        self.label, self._seen = "a follower", seen

    def make_supervisor(self, session: Any, notify: Any) -> Any:
        done = threading.Event()
        return SimpleNamespace(
            label=self.label,
            start=lambda: self._seen.append(f"starts with {session.uuid}"),
            raise_priority=done.set,
            wait=done.wait,
            finish=lambda: None,
        )

    def show_summary(self, session: Any, report: Any, console: Any) -> None:
        self._seen.append("summed up")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JournalFolder:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(stdio_followers, "_POLL_SECONDS", 0.01)
    return file_layout.create_journal(
        SessionFile(recording=str(tmp_path / "r.a2a.db"), pid=1, started=STARTED)
    )


def work(tmp_path: Path, folder: JournalFolder) -> FollowersJob:
    return FollowersJob(
        str(tmp_path / "r.a2a.db"), facts(1).uuid, str(folder.path), FollowerOptions()
    )


def test_followers_start_with_the_recording_and_end_after_it(
    tmp_path: Path, folder: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(stdio_followers, "run_followers", lambda *_: [Follower(seen)])
    log = (tmp_path / "log").open("w")
    console = TextConsole(None, log, quiet=True)
    thread = threading.Thread(target=run_job, args=(work(tmp_path, folder), console))
    thread.start()
    made = writer(tmp_path / "r.a2a.db")
    made.write([request(1)], changes=changes(exchange(1)))
    until(lambda: seen)
    assert seen == [f"starts with {facts(1).uuid}"]
    made.finish(STARTED + 10**10)
    thread.join(SECONDS)
    console.close()
    assert seen[1:] == ["summed up"]
    assert (
        tmp_path / "log"
    ).read_text() == f"a2a-proxy: {tmp_path}/r.a2a.db: recorded from a stdio agent\n"


def test_followers_end_with_a_message_if_nothing_is_recorded(
    tmp_path: Path, folder: JournalFolder
) -> None:
    folder.release_locks()
    log = (tmp_path / "log").open("w")
    console = TextConsole(None, log, quiet=True)
    run_job(work(tmp_path, folder), console)
    console.close()
    assert "nothing was recorded, so no follower ran" in (tmp_path / "log").read_text()


def test_followers_do_not_wait_for_a_dead_recorder(
    tmp_path: Path, folder: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(stdio_followers, "run_followers", lambda *_: [Follower(seen)])
    made = writer(tmp_path / "r.a2a.db")
    made.write([request(1)], changes=changes(exchange(1)))
    folder.release_locks()
    run_job(work(tmp_path, folder), TextConsole(None, None, quiet=True), patience_seconds=100)
    assert seen[1:] == ["summed up"]


def test_follower_options_are_checked_before_the_agent_starts() -> None:
    def followers(**given: Any) -> FollowerOptions:
        return stdio_config(("agent",), ProxyArguments(**given)).followers

    assert followers() == FollowerOptions()
    with pytest.raises(UserError, match="is not an OTLP endpoint"):
        followers(otlp="ftp://x")
    with pytest.raises(UserError, match="has no effect without --archive"):
        followers(archive_id="x")


# its processes have the lowest priority there is: beside busy ones they take a minute
@pytest.mark.soak
def test_spans_of_a_stdio_agent_are_sent_after_the_proxy_has_ended(tmp_path: Path) -> None:
    with http_backend() as received:
        client = Client(
            wrapped(agent(), "--record", tmp_path / "r.a2a.db", "--otlp", received.endpoint),
            tmp_path / "s",
        )
        client.read()
        client.write(CARD)
        client.expect(b'"id": 1')
        client.close()
        assert client.process.wait(60) == 0
        log = tmp_path / "s" / "hooks" / "stdio.log"
        until(lambda: log.exists() and "OTLP: 1 call sent" in log.read_text())
        assert [span.name for span in received.spans()] == ["GetExtendedAgentCard"]
        assert client.err == b""
