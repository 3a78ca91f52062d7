"""What follows one run, hooks and an export: started beside the recorder, never waited for while traffic passes."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import TYPE_CHECKING

from a2a_proxy.cli.archive import Archive, archive_keeper, archived
from a2a_proxy.cli.console import Console, HookEnd
from a2a_proxy.cli.errors import UserError, state_directory
from a2a_proxy.protocol.text import visible

if TYPE_CHECKING:
    from a2a_proxy.follower.keeper import HookKeeper, Report
    from a2a_proxy.telemetry.settings import Settings

PATIENCE = 10.0
"""Seconds that hooks get to catch up after everything is recorded."""
_UNNOTICED = 0.5
"""Seconds that need no explanation."""


def check_hooks(names: tuple[str, ...]) -> None:
    """Are there such hooks? None of their code is run.

    Raises:
        UserError: one of them is not there, or given twice.
    """
    from a2a_proxy.hooks.find import HookError, check

    for number, name in enumerate(names):
        if name in names[:number]:
            raise UserError(f"--hook {name} is given twice", "leave one of them out")
        try:
            check(name)
        except HookError as wrong:
            raise UserError(wrong.message, wrong.hint) from wrong


class Hooks:
    """Those that the user named, the export and the archive."""

    def __init__(
        self,
        names: tuple[str, ...],
        console: Console,
        otlp: Settings | None = None,
        archive: Archive | None = None,
    ) -> None:
        self._names = names
        self._archive = archive
        self._archiving: HookKeeper | None = None
        self._otlp = otlp
        self._console = console
        self._keepers: list[HookKeeper] = []
        self._export: HookKeeper | None = None
        self._recording = self._session = ""

    def start(self, recording: str, session: str) -> None:
        """Follow the session of this uuid; returns at once.

        Raises:
            UserError: the state directory cannot be used.
        """
        if not (self._names or self._otlp or self._archive):
            return
        from a2a_proxy.follower.keeper import HookKeeper  # only who has hooks pays for them

        self._recording, self._session = recording, session
        with state_directory():
            for name in self._names:
                self._keepers.append(HookKeeper(name, recording, self._tell, session=session, follow=True))
            if self._otlp is not None:
                from a2a_proxy.telemetry.keeper import OtlpKeeper

                self._export = OtlpKeeper(self._otlp, recording, self._tell, session)
                self._keepers.append(self._export)
        if self._archive is not None:
            self._archiving = archive_keeper(self._archive, recording, session, self._tell)
            self._keepers.append(self._archiving)
        for keeper in self._keepers:
            keeper.start()

    async def end(self, leave: asyncio.Event, patience: float = PATIENCE) -> None:
        """Let them catch up for `patience` seconds, or until `leave`; end them and say how they did."""
        for keeper in self._keepers:
            keeper.hurry()
        began, told = time.monotonic(), False
        while waiting := [keeper for keeper in self._keepers if not keeper.wait(0)]:
            passed = time.monotonic() - began
            if leave.is_set() or passed >= patience:
                break
            if passed >= _UNNOTICED and not told:
                told = True
                names = ", ".join(keeper.label for keeper in waiting)
                self._console.note(f"stopping: waiting for {names} (Ctrl-C again does not wait)", loud=False)
            await asyncio.to_thread(waiting[0].wait, 0.05)
        self.give_up()

    def give_up(self) -> None:
        """End them now and say how they did. Where that has been done, nothing."""
        keepers, self._keepers = self._keepers, []
        for keeper in keepers:
            self._sum_up(keeper)

    def _sum_up(self, keeper: HookKeeper) -> None:
        report = keeper.finish()
        if keeper is self._archiving and self._archive is not None:
            told, hint = archived(self._archive, self._recording, report, self._behind(report))
            self._console.note(told, hint, loud=bool(hint))
            return
        if keeper is not self._export or self._otlp is None:
            self._console.hook(self._summed_up(report))
            return
        from a2a_proxy.cli.otlp import summed_up

        told, hint, loud = summed_up(self._otlp, report, self._recording, self._session)
        self._console.note(told, hint, loud=loud)

    def _summed_up(self, report: Report) -> HookEnd:
        behind = self._behind(report)
        again = shlex.join(("a2a-inspect", "hooks", self._recording, "--hook", report.name))
        return HookEnd(report.name, report.outcome, report.calls, report.errors, behind, report.log, again)

    def _behind(self, report: Report) -> int:
        from a2a_proxy.follower.behind import frames_after  # which knows SQLite: the relay starts without it
        from a2a_proxy.recording.errors import RecordingError

        try:
            return frames_after(self._recording, self._session, report.frame)
        except RecordingError:
            return 0

    def _tell(self, message: str, hint: str) -> None:
        self._console.note(visible(message), hint)
