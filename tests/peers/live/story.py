"""A story: what a client and an agent say to one another on live streams, both parts beside each
other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from peers.live.agent import Part
from peers.live.client import LiveClient
from peers.live.payloads import BIDI, Family


@dataclass(frozen=True)
class Found:
    """One thing that the rules must say of a story."""

    rule: str
    exchange: int
    """Which of the story's exchanges, from 0."""
    place: str
    """A frame by side and number, `<2` the agent's third and `>0` the client's first; `-`: the
    exchange as a whole."""
    times: int = 1


ClientPart = Callable[[LiveClient], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """`name` is what the client puts into its metadata."""

    name: str
    client: ClientPart
    agent: Part
    family: Family = BIDI
    others: dict[str, Part] = field(default_factory=dict)
    """Parts on other methods (`+subscribe`)."""
    finds: list[Found] = field(default_factory=list)
    """All that the rules say of it."""
    version: str = "1.0"
    """`A2A-Version` of the client."""
    undeclared: bool = False
    """It is told with the agent that declares no live streams."""


def parts(stories: list[Story]) -> dict[str, tuple[Family, Part]]:
    """What an agent has to know to tell these."""
    found: dict[str, tuple[Family, Part]] = {}
    for story in stories:
        found[story.name] = (story.family, story.agent)
        found |= {story.name + method: (BIDI, part) for method, part in story.others.items()}
    return found
