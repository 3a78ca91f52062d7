"""Send the rest of an incomplete live export later. It continues at the checkpoint, so nothing is
sent twice."""

import fcntl
import os
from pathlib import Path

from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.process import Follower, FollowTarget
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.telemetry.consumer import OtlpConsumer
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.supervisor import checkpoint_path


def send_unsent(recording: str, session: str, settings: OtlpSettings) -> CallTally | None:
    """Send the rest of the session with this uuid; return the sent and refused spans, or None if
    nothing is left.

    Raises:
        TelemetryError: the backend accepts nothing, or a live export is running.
        RecordingError: the recording cannot be read.
        OSError: the state directory cannot be used.
    """
    path = checkpoint_path(session)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _UnsentExport(path, file).send_rows(FollowTarget(recording, session), settings)
    finally:
        os.close(file)


class _UnsentExport:
    """The rest of the export with one checkpoint file."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self._failure: FollowerNotice | None = None
        self._follower: Follower

    def send_rows(self, target: FollowTarget, settings: OtlpSettings) -> CallTally:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TelemetryError(
                "a proxy is sending these spans now", "wait until it ends, or omit --unsent"
            ) from None
        ledger = CheckpointFile(self._file)
        before = ledger.read_mark()
        count = CallTally()
        backend = SdkBackend(settings.target)
        try:
            courier = RetrySender(backend, settings.target.shown, count, self._on_status)
            self._follower = follower = Follower(
                target,
                lambda: OtlpConsumer(settings, courier, follower),
                ledger,
                count,
                self._on_status,
            )
            courier.is_stopping = lambda: follower.stopping
            follower.run()
        finally:
            backend.close()
        if follower.stopping and self._failure is not None:
            raise TelemetryError(
                self._failure.message, "check the endpoint; the unsent spans can be sent later"
            )
        self._path.unlink(missing_ok=True)
        return CallTally(count.calls - before.calls, count.errors - before.errors)

    def _on_status(self, status: Status) -> None:
        """Stop when the backend accepts nothing: the command reports that, and the user can try
        again."""
        if isinstance(status, FollowerNotice):
            self._failure = status
            self._follower.stopping = True
