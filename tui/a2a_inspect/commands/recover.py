"""`a2a-inspect recover`: finish the recordings that were left when both the proxy and its recorder ended early."""

from __future__ import annotations

from a2a_proxy.capture import places
from a2a_proxy.capture.places import Leftover
from a2a_proxy.cli import text
from a2a_proxy.cli.errors import state_directory, tell
from a2a_proxy.recorder.keeper import Keeper
from a2a_proxy.recorder.status import Done, Failed, Status


def recover_all() -> int:
    """Record what is left in every left-over journal; 0 where all went well.

    Raises:
        UserError: the state directory cannot be read.
    """
    with state_directory():
        left = places.leftovers()
    if not left:
        print("nothing to recover")
    return max((_recover(journal) for journal in left), default=0)


def _recover(journal: Leftover) -> int:
    def ignore(_: Status) -> None:
        """Only the outcome is printed."""

    keeper = Keeper(journal.path, ignore)
    answer = keeper.start(timeout=None)
    keeper.let_go()
    if isinstance(answer, Failed):
        keeper.kill()
    keeper.drain()
    end = keeper.outcome or answer
    if isinstance(end, Done):
        counts = f"{text.plural(end.exchanges, 'exchange')}, {text.plural(end.frames, 'frame')}"
        print(f"recovered {journal.session.recording}: {counts} from the journal")
        return 0
    failed = end if isinstance(end, Failed) else Failed("no answer")
    tell("a2a-inspect", f"cannot recover {journal.session.recording}: {failed.message}", failed.hint)
    return 1
