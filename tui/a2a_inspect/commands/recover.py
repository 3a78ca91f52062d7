"""`a2a-inspect recover`: finish the recordings whose proxy and recorder both ended early."""

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import Leftover
from a2a_proxy.cli.errors import print_error, state_directory_errors
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recorder.status import RecorderDone, RecorderFailed, Status


def recover_all() -> int:
    """Record the rest of every left-over journal; return 0 if all succeeded.

    Raises:
        UserError: the state directory cannot be read.
    """
    with state_directory_errors():
        leftovers = file_layout.find_leftovers()
    if not leftovers:
        print_line("nothing to recover")
    return max((_recover_journal(journal) for journal in leftovers), default=0)


def _recover_journal(journal: Leftover) -> int:
    def ignore(_: Status) -> None:
        """Ignore progress: only the outcome is printed."""

    supervisor = RecorderSupervisor(journal.path, ignore)
    answer = supervisor.start(timeout=None)
    supervisor.close_wake_pipe()
    if isinstance(answer, RecorderFailed):
        supervisor.kill()
    supervisor.drain_journal()
    end = supervisor.outcome or answer
    if isinstance(end, RecorderDone):
        counts = (
            f"{text.format_count(end.exchanges, 'exchange')}, "
            f"{text.format_count(end.frames, 'frame')}"
        )
        print_line(f"recovered {journal.session.recording}: {counts} from the journal")
        return 0
    failed = end if isinstance(end, RecorderFailed) else RecorderFailed("no answer")
    print_error(
        "a2a-inspect", f"cannot recover {journal.session.recording}: {failed.message}", failed.hint
    )
    return 1
