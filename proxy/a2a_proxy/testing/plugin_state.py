"""State that the modules of the plug-in share through pytest's stashes: keys, the name of the
marker, summary titles.

Imports only pytest, because `plugin` imports this module at the start of every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from a2a_proxy.testing.agent_session import AgentSession

MARKER = "a2a_cassette"

SESSIONS_KEY: pytest.StashKey[list[AgentSession]] = pytest.StashKey()
"""The agents of a test."""
PHASE_KEY: pytest.StashKey[str] = pytest.StashKey()
"""Outcome of the call phase of a test: `passed`, `failed`, `skipped`."""
SUMMARY_KEY: pytest.StashKey[list[tuple[str, str]]] = pytest.StashKey()
"""Lines of a test for the summary at the end of the run: the title, and a line under it."""
SUMMARY_ATTRIBUTE = "a2a_summed"
"""Attribute of a report that holds the SUMMARY_KEY lines of its test. pytest-xdist carries it to
the main process."""
UNUSED_TITLE = "recorded calls that no test makes"
MASKED_TITLE = "requests that equal a recorded one only after masking"
WRITTEN_TITLE = "cassettes recorded"
FORWARDED_TITLE = "calls that the live agent answered and that are in no cassette (mode spy)"
ORPHANS_TITLE = "cassettes that no test uses"


def typed_hosts(config: pytest.Config) -> list[str]:
    """Return the hosts of `--a2a-allowed-hosts`."""
    return [each for each in (config.option.a2a_allowed_hosts or "").split(",") if each]
