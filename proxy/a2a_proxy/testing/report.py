"""Information about its agents in the report of a failed test: their replay, and the path of the
recording, also in JUnit."""

import pytest

from a2a_proxy.testing.child_process import CommandRefused
from a2a_proxy.testing.plugin_state import SESSIONS_KEY, SUMMARY_ATTRIBUTE, SUMMARY_KEY

SECTION_TITLE = "a2a"
JUNIT_PROPERTY = "a2a_recording"


def complete_report(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the information to the report."""
    if report.when == "teardown":
        setattr(report, SUMMARY_ATTRIBUTE, item.stash.get(SUMMARY_KEY, []))
    if not report.failed or report.when == "setup":
        return
    paths = {value for name, value in item.user_properties if name == JUNIT_PROPERTY}
    for session in item.stash[SESSIONS_KEY]:
        path = str(session.recording)
        if path in paths:
            continue
        try:
            report.sections.append((SECTION_TITLE, session.report_text()))
        except CommandRefused as wrong:
            report.sections.append((SECTION_TITLE, str(wrong)))
        item.user_properties.append((JUNIT_PROPERTY, path))
        if (JUNIT_PROPERTY, path) not in report.user_properties:
            report.user_properties.append((JUNIT_PROPERTY, path))
