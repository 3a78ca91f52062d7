"""`--hook`: validated before anything starts, and summarized at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.console import Console, HookSummary
from a2a_proxy.cli.followed_run import FollowedSession
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import shell_line

if TYPE_CHECKING:
    from a2a_proxy.follower.supervisor import FollowerSupervisor, HookReport, NoticeCallback


def check_hooks(names: tuple[str, ...]) -> None:
    """Check that the hooks exist, without running their code.

    Raises:
        UserError: a hook does not exist, or is given twice.
    """
    from a2a_proxy.hooks.find import check_hook

    for number, name in enumerate(names):
        if name in names[:number]:
            raise UserError(f"--hook {name} is given twice", "leave one of them out")
        check_hook(name)


class HookRunFollower(msgspec.Struct, frozen=True):
    """A hook of this name, as a `RunFollower`."""

    name: str

    def make_supervisor(
        self, session: FollowedSession, notify: NoticeCallback
    ) -> FollowerSupervisor:
        """Return the supervisor of the hook's process (`RunFollower.make_supervisor`)."""
        from a2a_proxy.follower.supervisor import (
            FollowerSupervisor,  # imported only if there are hooks
        )

        return FollowerSupervisor(
            self.name, session.recording, notify, session=session.uuid, follow=True
        )

    def show_summary(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """Show the result of the hook (`RunFollower.show_summary`)."""
        behind = session.frames_after(report.frame)
        again = shell_line("a2a-inspect", "plugins", session.recording, "--hook", self.name)
        console.show_hook(
            HookSummary(
                self.name, report.outcome, report.calls, report.errors, behind, report.log, again
            )
        )
