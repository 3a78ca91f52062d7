"""Whether what was found makes a run fail (`--fail-on`)."""

from __future__ import annotations

from a2a_proxy.recorder.status import RecorderDone


def grave(done: RecorderDone, fail_on: str) -> bool:
    """Something was found that is as grave as `fail_on` says: the name of a `Severity` in lower case, or `never`."""
    found = {"error": done.error_findings, "warning": done.error_findings + done.warning_findings}
    return fail_on != "never" and found.get(fail_on, done.findings) > 0
