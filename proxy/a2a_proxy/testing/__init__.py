"""The pytest plug-in (manual: pytest).

pytest imports `plugin` at its start; the other modules are imported on first use.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

The plug-in:
- `plugin`: options, the marker, the fixtures, the hooks
- `fixtures`: implementation of the fixtures
- `report`: information about agents in the report of a failed test
- `cassette_usage`: used and unused cassettes
- `plugin_state`: state in pytest's stashes

One test:
- `agent_session`: one agent of one test
- `teardown`: findings, comparison and cassette after a test
- `plan`: table of the record modes
- `settings`: settings of a test

The other process:
- `child`: the process behind the fixtures (package)
- `child_process`: that process, as the tests' process uses it
- `child_messages`: messages between the two processes
- `matcher_channel`: calls of the tests' own matchers by that process

Elements:
- `agent`: the value of `a2a_agent` and `a2a_live`
- `live_recording`: the value of `a2a_recording`
- `cassette_age`: age of a cassette
- `cassette_paths`: path of a test's cassette
- `network_guard`: blocks connections to other hosts
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_proxy.testing.agent import Agent

__all__ = ["Agent"]


def __getattr__(name: str) -> object:
    """`Agent`, for annotations: the type of the fixtures `a2a_agent` and `a2a_live`."""
    if name != "Agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from a2a_proxy.testing.agent import Agent

    return Agent
