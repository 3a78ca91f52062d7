"""The supervisor: restarts by the policy, status pipe, stop; with small shell programs."""

from __future__ import annotations

import signal
import subprocess

import pytest

from a2a_proxy.recorder.process_supervisor import ProcessEnd, ProcessSupervisor, RestartPolicy

PATIENCE = 120
NO_PAUSE = (0.001,)


class Supervised(ProcessSupervisor):
    """Runs shell commands, one per start; the last one repeats."""

    def __init__(
        self, policy: RestartPolicy, *commands: str, progress: bool = False, ready: bool = True
    ) -> None:
        super().__init__("test", policy)
        self.commands, self.progress, self.ready = list(commands), progress, ready
        self.lines: list[bytes] = []
        self.deaths: list[tuple[str, int]] = []
        self.given_up: list[str] = []
        self.done = False
        self._thread.start()

    def _spawn_process(self, status_fd: int) -> subprocess.Popen[bytes]:
        command = self.commands.pop(0) if len(self.commands) > 1 else self.commands[0]
        return subprocess.Popen(
            [*command.split(" ", 2)[:2], command.split(" ", 2)[2]], stdout=status_fd
        )

    def _read_statuses(self, status_fd: int) -> None:
        with open(status_fd, "rb", closefd=False) as pipe:
            self.lines += pipe.readlines()
        self.done = self.lines[-1:] == [b"done\n"]

    def _is_finished(self) -> bool:
        return self.done

    def _is_ready(self) -> bool:
        return self.ready

    def _has_progressed(self) -> bool:
        return self.progress

    def _on_death(self, end: ProcessEnd, deaths: int) -> None:
        self.deaths.append((end.description, deaths))

    def _on_given_up(self, end: ProcessEnd) -> None:
        self.given_up.append(end.description)


def test_a_process_is_restarted_until_it_is_done() -> None:
    """Each death is reported with its number in the row, and the end of the work is none."""
    one = Supervised(
        RestartPolicy(NO_PAUSE), "sh -c echo a; exit 3", "sh -c kill -9 $$", "sh -c echo done"
    )
    assert one.wait(PATIENCE)
    assert one.lines == [b"a\n", b"done\n"]
    assert one.deaths == [("exit code 3", 1), ("killed by signal 9", 2)]
    assert (one.restarts, one.given_up) == (2, [])


def test_deaths_in_a_row_are_limited() -> None:
    one = Supervised(RestartPolicy(NO_PAUSE, max_deaths=3), "sh -c exit 3")
    assert one.wait(PATIENCE)
    assert (len(one.deaths), one.given_up) == (3, ["exit code 3"])


def test_progress_begins_a_new_row() -> None:
    """So a process that gets on is restarted without limit."""
    programs = ["sh -c exit 3"] * 5 + ["sh -c echo done"]
    one = Supervised(RestartPolicy(NO_PAUSE, max_deaths=2), *programs, progress=True)
    assert one.wait(PATIENCE)
    assert one.deaths == [("exit code 3", 1)] * 5


@pytest.mark.parametrize(("ready", "restarts"), [(False, 1), (True, 4)])
def test_before_the_first_is_ready_there_are_fewer_tries(ready: bool, restarts: int) -> None:
    policy = RestartPolicy(NO_PAUSE, max_deaths=5, max_deaths_before_ready=2)
    one = Supervised(policy, "sh -c exit 3", ready=ready)
    assert one.wait(PATIENCE)
    assert one.restarts == restarts


@pytest.mark.parametrize(("retry", "restarts"), [(True, 2), (False, 0)])
def test_a_program_that_does_not_exist(retry: bool, restarts: int) -> None:
    one = Supervised(
        RestartPolicy(NO_PAUSE, max_deaths=3, retry_failed_start=retry), "/no/such/program -c x"
    )
    assert one.wait(PATIENCE)
    assert (one.restarts, one.pid) == (restarts, 0)
    assert one.given_up == ["it cannot be started: no such file or directory"]


def test_a_process_that_does_not_exit_is_killed() -> None:
    """It has closed its status pipe, and nobody waits for what else it does."""
    one = Supervised(
        RestartPolicy(NO_PAUSE, max_deaths=1, exit_seconds=0.2), "sh -c exec 1>&-; exec sleep 1000"
    )
    assert one.wait(PATIENCE)
    assert one.given_up == ["killed by signal 9"]


def test_a_stopped_one_is_not_restarted() -> None:
    """Neither where it runs nor in the pause before the next start."""
    one = Supervised(RestartPolicy((1000.0,)), "sh -c exec sleep 1000")
    assert one._launched.wait(PATIENCE)
    assert one.pid
    assert not one.wait(0)
    one.stop_process(signal.SIGTERM)
    assert one.wait(PATIENCE)
    assert (one.deaths, one.restarts) == ([], 0)
    waiting = Supervised(RestartPolicy((1000.0,)), "sh -c exit 3")
    while not waiting.restarts:
        assert not waiting.wait(0.01)
    waiting.stop_process(None)
    assert waiting.wait(PATIENCE)
    assert waiting.restarts == 1


def test_pauses_repeat_the_last_one() -> None:
    policy = RestartPolicy((0.1, 1.0, 5.0))
    assert [policy.choose_pause(deaths) for deaths in (1, 2, 3, 4, 9)] == [0.1, 1.0, 5.0, 5.0, 5.0]
