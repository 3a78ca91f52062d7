"""Decide whether findings make a run fail (`--fail-on`)."""

from a2a_proxy.recorder.status import RecorderDone


def has_failing_finding(summary: RecorderDone, fail_on: str) -> bool:
    """Return whether a finding is at least as severe as `fail_on`: the name of a `Severity` in
    lower case, or `never`.
    """
    found = {
        "error": summary.error_findings,
        "warning": summary.error_findings + summary.warning_findings,
    }
    return fail_on != "never" and found.get(fail_on, summary.findings) > 0
