"""The pytest plug-in (manual: pytest). pytest loads `plugin` at its start; the other modules are imported on first
use."""

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
