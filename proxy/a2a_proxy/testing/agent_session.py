"""One agent of one test: opened by a fixture, queried while the test runs, checked when it is
over."""

import shlex
import shutil
from pathlib import Path
from typing import Any

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.testing.agent import Agent
from a2a_proxy.testing.cassette_paths import display_path
from a2a_proxy.testing.child_messages import (
    AgentOpened,
    OpenAgent,
    QueryReplay,
    ReplayStatus,
    StopAgent,
    StoreTraffic,
)
from a2a_proxy.testing.child_process import ChildProcess
from a2a_proxy.testing.network_guard import GUARD
from a2a_proxy.testing.plan import CassetteWrite, RecordPlan
from a2a_proxy.testing.settings import PluginSettings

_MAX_LISTED = 20
"""Maximum number of findings, differences or calls listed."""
RECORDING, NEW_RECORDING = "recording.a2a.db", "answered-live.a2a.db"
NEW_CASSETTE = "new.a2a.jsonl"
"""Name of the new cassette in the command that is suggested to create it."""


class AgentSession:
    """An agent and its traffic with the test."""

    def __init__(
        self,
        process: ChildProcess,
        folder: Path,
        plan: RecordPlan,
        settings: PluginSettings,
        cassettes: list[Path],
        test: str,
    ) -> None:
        """`folder`: an empty folder for this session alone. `test` is the id of the test. Raises
        CommandRefused."""
        self.recording = folder / RECORDING
        self.is_empty = False
        """Whether there was no traffic to write into a cassette; set by `close`."""
        self.lost_notes: list[str] = []
        """Notes of a re-recorded cassette whose place no longer exists; set by `close`."""
        self.written_note = ""
        """The cassette that was written; set by `close`."""
        self.aside_note = ""
        """The number of calls that are in no cassette and the command that adds them; set by
        `close`."""
        self._folder, self._process, self._plan, self._settings = folder, process, plan, settings
        self._cassettes = cassettes
        self._test = test
        self._agent = -1
        self._status = ReplayStatus()

    def open_agent(self, upstream: str) -> Agent:
        """Start the agent and return it. Raises CommandRefused."""
        plan = self._plan
        answer = self._process.send_order(
            OpenAgent(
                recording=str(self.recording),
                command=("pytest", self._test),
                cassettes=tuple(map(str, self._cassettes)) if plan.replay else (),
                replay=self._make_replay_settings() if plan.replay else {},
                upstream=upstream if plan.live else "",
                upstream_grpc=self._settings.upstream_grpc if plan.live else "",
                redact=self._settings.redact,
                new_recording=str(self._folder / NEW_RECORDING),
                faults=self._settings.get_traffic_faults(replay=plan.replay),
            )
        )
        assert isinstance(answer, AgentOpened)
        self._agent = answer.agent
        host, _, port = answer.address.rpartition(":")
        self._allowed_place = host, int(port)
        GUARD.allow_address(*self._allowed_place)
        return Agent(answer.address)

    def _make_replay_settings(self) -> dict[str, Any]:
        """Return the settings of the replay, with matchers as the process of the agents calls
        them."""
        settings = self._settings.get_replay_settings()
        settings["match_on"] = [
            self._process.register_matcher(each) if callable(each) else each
            for each in settings["match_on"]
        ]
        return settings

    def store_traffic(self) -> None:
        """Write all traffic so far into the recording. Raises CommandRefused."""
        self._update_status(self._process.send_order(StoreTraffic(self._agent)))

    def report_text(self) -> str:
        """Return the text for the report of a failed test: what was replayed, the misses, the path
        of the recording."""
        if self._agent >= 0:
            self._update_status(self._process.send_order(QueryReplay(self._agent)))
        lines = (
            [f"replayed: {display_path(path)}" for path in self._cassettes]
            if self._plan.replay
            else []
        )
        if self._status.misses:
            lines += [*self._status.misses, self._record_hint()]
        if self._status.forwarded:
            lines.append(f"calls that the live agent answered: {self._status.forwarded}")
        lines += [f"answered despite differences: {each}" for each in self._status.loose]
        lines += self._status.masked
        lines += [make_visible(note) for note in self._status.notes]
        lines.append(
            f"recording of the traffic: {self.recording}\ninspect it: a2a-inspect {self.recording}"
        )
        return "\n".join(lines)

    def close(self, *, passed: bool, failed: bool) -> list[str]:
        """Stop the agent and return the problems of a passed test. The recording is kept if there
        are any, or the test failed.

        Raises CommandRefused, RecordingError.
        """
        GUARD.forget_address(*self._allowed_place)
        self._update_status(self._process.send_order(QueryReplay(self._agent)))
        wrong = self._replay_problems() if passed else []
        keep = failed or bool(wrong) or (passed and self._plan.live)
        agent, self._agent = self._agent, -1
        self._update_status(self._process.send_order(StopAgent(agent, keep=keep)))
        if passed and not wrong:
            wrong = self._recording_problems()
        if passed and not wrong:
            self._write_cassette()
        if not (failed or wrong or self.aside_note):
            shutil.rmtree(self._folder, ignore_errors=True)
        return wrong

    @property
    def unused_calls(self) -> tuple[str, ...]:
        """Recorded calls that the test did not make; available after `close`."""
        return self._status.unused

    @property
    def masked_matches(self) -> tuple[str, ...]:
        """Requests that matched only after masking, each with the call and what was masked;
        available after `close`."""
        return tuple(each.removeprefix("masked match: ") for each in self._status.masked)

    def _update_status(self, answer: object) -> None:
        assert isinstance(answer, ReplayStatus)
        self._status = answer

    def _replay_problems(self) -> list[str]:
        wrong = []
        if self._status.misses:
            wrong.append("\n".join([*self._status.misses, self._record_hint()]))
        if self._status.missed_faults:
            missed = list_lines(list(self._status.missed_faults), "see the setting faults")
            wrong.append(f"faults that never happened:\n{missed}")
        if self._settings.fail_unused and self._status.unused:
            unused = list_lines(list(self._status.unused), "see the cassette")
            wrong.append(f"recorded calls that the test did not make:\n{unused}")
        return wrong

    def _record_hint(self) -> str:
        mode = "new_episodes" if len(self._cassettes) == 1 else "rewrite"
        command = f"pytest {shlex.quote(self._test)} --a2a-record-mode={mode} --a2a-upstream=URL"
        return f"hint: if the test should make this call, record it: {command}"

    def _recording_problems(self) -> list[str]:
        if not self._plan.compare:
            return []
        from a2a_proxy.testing import teardown

        found = teardown.list_differences(self._cassettes[0], self.recording)
        if not found:
            return []
        cassette = display_path(self._cassettes[0])
        how = f"a2a-inspect diff {cassette} {self.recording}"
        return [
            f"the agent's answers differ from {cassette}:\n{list_lines(found, how)}\nsee: {how}"
        ]

    def _write_cassette(self) -> None:
        from a2a_proxy.testing import teardown

        cassette, new = self._cassettes[:1], self._folder / NEW_RECORDING
        keep = self._settings.before_record
        if self._plan.write is CassetteWrite.REPLACE:
            self.is_empty = not teardown.count_calls(self.recording, keep)
            if not self.is_empty:
                self.lost_notes = teardown.replace_cassette(self.recording, cassette[0], keep)
                self.written_note = display_path(cassette[0])
        elif (
            self._plan.write is CassetteWrite.APPEND
            and new.exists()
            and teardown.count_calls(new, keep)
        ):
            teardown.append_session(new, cassette[0], keep)
            self.written_note = f"{display_path(cassette[0])}, new calls appended"
        elif self._plan.write is CassetteWrite.ASIDE:
            self.aside_note = self._make_aside_note(new if self._plan.replay else self.recording)

    def _make_aside_note(self, recording: Path) -> str:
        """Return the number of calls of the live agent that are in no cassette, and the command
        that adds them."""
        from a2a_proxy.testing import teardown

        count = teardown.count_calls(recording) if recording.exists() else 0
        if not count:
            return ""
        cassette = display_path(self._cassettes[0])
        command = ["a2a-inspect", "export", str(recording), "-o", cassette]
        if self._plan.replay:
            command = ["a2a-inspect", "merge", NEW_CASSETTE, cassette, str(recording)]
        return f"{count}; to keep them: {shlex.join(command)}"


def list_lines(lines: list[str], more: str) -> str:
    """Return the first of some lines, indented, and how many follow."""
    shown_lines = [f"  {line}" for line in lines[:_MAX_LISTED]]
    return "\n".join(
        shown_lines
        + ([f"  and {len(lines) - _MAX_LISTED} more: {more}"] if len(lines) > _MAX_LISTED else [])
    )


class LiveAgentSession(AgentSession):
    """The session of `a2a_live`, whose traffic must not violate any rule."""

    def _recording_problems(self) -> list[str]:
        from a2a_proxy.testing import teardown

        found = teardown.list_violations(
            self.recording, self._settings.fail_on, self._settings.ignored_rules
        )
        if not found:
            return []
        how = f"a2a-inspect check {self.recording}"
        count = "a violation" if len(found) == 1 else f"{len(found)} violations"
        return [f"{count} of the protocol:\n{list_lines(found, how)}\nsee: {how}"]
