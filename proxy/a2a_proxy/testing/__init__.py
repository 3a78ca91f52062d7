"""The pytest plug-in (manual: pytest). At its start pytest loads `plugin`; all else is imported when it is used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_proxy.testing.agent import Agent

__all__ = ["Agent"]


def __getattr__(name: str) -> object:
    """`Agent`, for annotations: what `a2a_agent` and `a2a_live` give."""
    if name != "Agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from a2a_proxy.testing.agent import Agent

    return Agent
