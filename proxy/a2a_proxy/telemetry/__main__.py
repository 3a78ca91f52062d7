"""Entry point of the live export process: `python -m a2a_proxy.telemetry RECORDING --otlp SETTINGS
--checkpoint FD ...`.

Called only by `supervisor`.
"""

import functools
import signal
import sys

from a2a_proxy.follower.entry import FollowerJob, run_follower
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.process import Follower
from a2a_proxy.recorder.priority import restore_priority
from a2a_proxy.telemetry.consumer import OtlpConsumer
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.settings import decode_settings


def main() -> int:
    """Follow the recording to its end and return the exit code."""
    return run_follower("a2a_proxy.telemetry", "--otlp", export_session)


def export_session(job: FollowerJob) -> None:
    """Export the session to its end. Raises TelemetryError, RecordingError."""
    settings = decode_settings(job.program_args)
    count = CallTally()
    backend = SdkBackend(settings.target)
    courier = RetrySender(backend, settings.target.shown, count, job.notify)
    backend.set_retry_listener(courier.report_failure)
    hurry = functools.cache(restore_priority)
    follower = Follower(
        job.target,
        lambda: OtlpConsumer(settings, courier, follower),
        job.checkpoint,
        count,
        job.notify,
        hurry,
    )
    courier.is_stopping, courier.report_alive = (
        (lambda: follower.stopping),
        follower.report_alive,
    )
    signal.signal(signal.SIGTERM, lambda *_: setattr(follower, "stopping", True))
    follower.run()
    backend.close()


if __name__ == "__main__":
    sys.exit(main())
