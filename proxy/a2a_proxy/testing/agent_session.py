"""One agent of one test: opened by a fixture, told about while the test runs, judged when it is over."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from a2a_proxy.protocol.text import visible
from a2a_proxy.testing.agent import Agent
from a2a_proxy.testing.cassette_paths import shown
from a2a_proxy.testing.child_messages import AgentOpened, OpenAgent, QueryReplay, ReplayStatus, StopAgent, StoreTraffic
from a2a_proxy.testing.child_process import ChildProcess
from a2a_proxy.testing.network_guard import GUARD
from a2a_proxy.testing.plan import RecordPlan, Write
from a2a_proxy.testing.settings import PluginSettings

_TOLD = 20
"""Findings, differences or calls that are told one by one."""
RECORDING, NEW_RECORDING = "recording.a2a.db", "answered-live.a2a.db"
NEW_CASSETTE = "new.a2a.jsonl"
"""What a command that is told calls the cassette that it makes."""


class AgentSession:
    """An agent and what passes between it and the test."""

    def __init__(
        self,
        process: ChildProcess,
        folder: Path,
        plan: RecordPlan,
        settings: PluginSettings,
        cassettes: list[Path],
        test: str,
    ) -> None:
        """`folder`: empty, of this scene alone. `test` is the id of the test. Raises Refused."""
        self.recording = folder / RECORDING
        self.empty = False
        """There was nothing to make a cassette of; after `close`."""
        self.lost: list[str] = []
        """Notes of a cassette that was recorded anew which have no place any more; after `close`."""
        self.aside = ""
        """How many calls went into no cassette, and the command that makes one of them; after `close`."""
        self._folder, self._process, self._plan, self._settings = folder, process, plan, settings
        self._cassettes = cassettes
        self._test = test
        self._agent = -1
        self._standing = ReplayStatus()

    def open(self, upstream: str) -> Agent:
        """The agent answers from now on. Raises Refused."""
        plan = self._plan
        answer = self._process.do(
            OpenAgent(
                recording=str(self.recording),
                command=("pytest", self._test),
                cassettes=tuple(map(str, self._cassettes)) if plan.replay else (),
                replay=self._settings.replay() if plan.replay else {},
                upstream=upstream if plan.live else "",
                upstream_grpc=self._settings.upstream_grpc if plan.live else "",
                redact=self._settings.redact,
                new_recording=str(self._folder / NEW_RECORDING),
            )
        )
        assert isinstance(answer, AgentOpened)
        self._agent = answer.agent
        host, _, port = answer.address.rpartition(":")
        self._place = host, int(port)
        GUARD.allow(*self._place)
        return Agent(answer.address)

    def settle(self) -> None:
        """Everything that has passed is in the recording. Raises Refused."""
        self._hear(self._process.do(StoreTraffic(self._agent)))

    def told(self) -> str:
        """For the report of a failed test: what was replayed, what was missed, where the recording will be."""
        if self._agent >= 0:
            self._hear(self._process.do(QueryReplay(self._agent)))
        lines = [f"replayed: {shown(path)}" for path in self._cassettes] if self._plan.replay else []
        if self._standing.misses:
            lines += [*self._standing.misses, self._mend()]
        if self._standing.forwarded:
            lines.append(f"calls that the live agent answered: {self._standing.forwarded}")
        lines += [f"answered though it differs: {each}" for each in self._standing.loose]
        lines += [visible(note) for note in self._standing.notes]
        lines.append(f"recording of what passed: {self.recording}\nlook at it with: a2a-inspect {self.recording}")
        return "\n".join(lines)

    def close(self, *, passed: bool, failed: bool) -> list[str]:
        """The test is over: what is wrong though it passed. The recording stays where something is, or it failed.

        Raises Refused, RecordingError.
        """
        GUARD.forget(*self._place)
        self._hear(self._process.do(QueryReplay(self._agent)))
        wrong = self._missed() if passed else []
        keep = failed or bool(wrong) or (passed and self._reads_recording)
        agent, self._agent = self._agent, -1
        self._hear(self._process.do(StopAgent(agent, keep=keep)))
        if passed and not wrong:
            wrong = self._judged()
        if passed and not wrong:
            self._kept()
        if not (failed or wrong or self.aside):
            shutil.rmtree(self._folder, ignore_errors=True)
        return wrong

    @property
    def unused(self) -> tuple[str, ...]:
        """Recorded calls that nobody asked for; after `close`."""
        return self._standing.unused

    @property
    def _reads_recording(self) -> bool:
        return self._plan.live

    def _hear(self, answer: object) -> None:
        assert isinstance(answer, ReplayStatus)
        self._standing = answer

    def _missed(self) -> list[str]:
        wrong = []
        if self._standing.misses:
            wrong.append("\n".join([*self._standing.misses, self._mend()]))
        if self._settings.fail_unused and self._standing.unused:
            unused = listed(list(self._standing.unused), "see the cassette")
            wrong.append(f"recorded, and never asked for:\n{unused}")
        return wrong

    def _mend(self) -> str:
        mode = "new_episodes" if len(self._cassettes) == 1 else "rewrite"
        command = f"pytest {shlex.quote(self._test)} --a2a-record-mode={mode} --a2a-upstream=URL"
        return f"hint: if the test should ask that, record it: {command}"

    def _judged(self) -> list[str]:
        if not self._plan.compare:
            return []
        from a2a_proxy.testing import teardown

        found = teardown.differences(self._cassettes[0], self.recording)
        if not found:
            return []
        cassette = shown(self._cassettes[0])
        how = f"a2a-inspect diff {cassette} {self.recording}"
        return [f"the agent does not answer as in {cassette}:\n{listed(found, how)}\nsee: {how}"]

    def _kept(self) -> None:
        from a2a_proxy.testing import teardown

        cassette, new = self._cassettes[:1], self._folder / NEW_RECORDING
        keep = self._settings.before_record
        if self._plan.write is Write.REPLACE:
            self.empty = not teardown.calls(self.recording, keep)
            if not self.empty:
                self.lost = teardown.replace(self.recording, cassette[0], keep)
        elif self._plan.write is Write.APPEND and new.exists() and teardown.calls(new, keep):
            teardown.append(new, cassette[0], keep)
        elif self._plan.write is Write.ASIDE:
            self.aside = self._left(new if self._plan.replay else self.recording)

    def _left(self, recording: Path) -> str:
        """What became of the live agent's answers where the cassette stays as it is."""
        from a2a_proxy.testing import teardown

        count = teardown.calls(recording) if recording.exists() else 0
        if not count:
            return ""
        cassette = shown(self._cassettes[0])
        command = ["a2a-inspect", "export", str(recording), "-o", cassette]
        if self._plan.replay:
            command = ["a2a-inspect", "cassette", "merge", NEW_CASSETTE, cassette, str(recording)]
        return f"{count}; to keep them: {shlex.join(command)}"


def listed(lines: list[str], more: str) -> str:
    """The first of some lines, indented, and how many follow."""
    kept = [f"  {line}" for line in lines[:_TOLD]]
    return "\n".join(kept + ([f"  and {len(lines) - _TOLD} more: {more}"] if len(lines) > _TOLD else []))


class LiveAgentSession(AgentSession):
    """The same for `a2a_live`: what passed must break no rule."""

    def _judged(self) -> list[str]:
        from a2a_proxy.testing import teardown

        found = teardown.violations(self.recording, self._settings.fail_on, self._settings.ignore)
        if not found:
            return []
        how = f"a2a-inspect check {self.recording}"
        count = "a violation" if len(found) == 1 else f"{len(found)} violations"
        return [f"{count} of the protocol:\n{listed(found, how)}\nsee: {how}"]
