"""What the reports of a failed test say about its agents, and where the recording is, also in JUnit."""

from __future__ import annotations

import pytest

from a2a_proxy.testing.child_process import CommandRefused
from a2a_proxy.testing.plugin import SAID, SCENES, SUMMED

TITLE = "a2a"
PROPERTY = "a2a_recording"


def complete(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add it."""
    if report.when == "teardown":
        setattr(report, SUMMED, item.stash.get(SAID, []))
    if not report.failed or report.when == "setup":
        return
    told = {value for name, value in item.user_properties if name == PROPERTY}
    for scene in item.stash[SCENES]:
        path = str(scene.recording)
        if path in told:
            continue
        try:
            report.sections.append((TITLE, scene.told()))
        except CommandRefused as wrong:
            report.sections.append((TITLE, str(wrong)))
        item.user_properties.append((PROPERTY, path))
        if (PROPERTY, path) not in report.user_properties:
            report.user_properties.append((PROPERTY, path))
