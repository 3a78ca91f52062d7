"""The followers of one run: they start with the recorder, and traffic never waits for them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from a2a_proxy.cli.archive import ArchiveRunFollower
from a2a_proxy.cli.console import Console
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.followed_run import FollowedSession, RunFollower
from a2a_proxy.cli.follower_config import FollowerOptions
from a2a_proxy.cli.hooks import HookRunFollower
from a2a_proxy.cli.otlp import OtlpRunFollower
from a2a_proxy.protocol.text import make_visible

if TYPE_CHECKING:
    from a2a_proxy.follower.supervisor import FollowerSupervisor

PATIENCE_SECONDS = 10.0
"""Seconds that followers get to catch up after everything is recorded."""
_QUIET_SECONDS = 0.5
"""Seconds of waiting without a message."""
_POLL_SECONDS = 0.05


def run_followers(options: FollowerOptions, console: Console) -> list[RunFollower]:
    """Return the requested followers, without the export if the environment disables it, which is
    shown as a warning.
    """
    found: list[RunFollower] = [HookRunFollower(name) for name in options.hooks]
    if options.otlp is not None:
        from a2a_proxy.telemetry.target import sdk_disabled

        if sdk_disabled(os.environ):
            console.show_note(
                "OTEL_SDK_DISABLED is true: nothing is exported", "unset it, or leave out --otlp"
            )
        else:
            found.append(OtlpRunFollower(options.otlp))
    if options.archive is not None:
        found.append(ArchiveRunFollower(options.archive))
    return found


class Followers:
    """The followers of one run."""

    def __init__(self, followers: Sequence[RunFollower], console: Console) -> None:
        self._followers = followers
        self._console = console
        self._supervisors: list[tuple[RunFollower, FollowerSupervisor]] = []
        self._session = FollowedSession("", "")

    def __bool__(self) -> bool:
        return bool(self._followers)

    @property
    def span_backend(self) -> str:
        """The backend of `--otlp` for users: `localhost:4318`; empty if no spans are sent."""
        return next(
            (
                each.settings.target.shown
                for each in self._followers
                if isinstance(each, OtlpRunFollower)
            ),
            "",
        )

    def start(self, recording: str, session: str) -> None:
        """Follow the session of this uuid; returns at once.

        Raises:
            UserError: the state directory cannot be used.
        """
        self._session = FollowedSession(recording, session)
        with state_directory_errors():
            self._supervisors = [
                (each, each.make_supervisor(self._session, self._show_notice))
                for each in self._followers
            ]
        for _, supervisor in self._supervisors:
            supervisor.start()

    async def end_followers(self, stop: asyncio.Event, seconds: float = PATIENCE_SECONDS) -> None:
        """Let the followers catch up for `seconds`, or until `stop` is set; then end them and show
        their results."""
        await asyncio.to_thread(self.wait, stop.is_set, seconds, " (Ctrl-C again does not wait)")
        self.stop_now()

    def wait(self, stop: Callable[[], bool], seconds: float, advice: str = "") -> None:
        """Wait until the followers have caught up, for `seconds` or until `stop` returns True.
        `advice` is appended to the line that says so."""
        for _, supervisor in self._supervisors:
            supervisor.raise_priority()
        began, is_noted = time.monotonic(), False
        while waiting := [
            supervisor for _, supervisor in self._supervisors if not supervisor.wait(0)
        ]:
            passed = time.monotonic() - began
            if stop() or passed >= seconds:
                break
            if passed >= _QUIET_SECONDS and not is_noted:
                is_noted = True
                names = ", ".join(supervisor.label for supervisor in waiting)
                self._console.show_note(f"stopping: waiting for {names}{advice}", loud=False)
            waiting[0].wait(_POLL_SECONDS)

    def stop_now(self) -> None:
        """End the followers now and show their results; no effect if that was done before."""
        kept, self._supervisors = self._supervisors, []
        for each, supervisor in kept:
            each.show_summary(self._session, supervisor.finish(), self._console)

    def _show_notice(self, message: str, hint: str) -> None:
        self._console.show_note(make_visible(message), hint)
