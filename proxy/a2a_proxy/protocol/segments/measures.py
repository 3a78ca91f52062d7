"""Turns and their latencies, computed from segments (manual/protocol.md "Measures"). All times and
durations are ns."""

import itertools
from collections.abc import Iterable

import msgspec

from a2a_proxy.model.values import AGENT, CLIENT, IDLE, Segment

_WAITING_REASONS = frozenset({"input", "auth"})
_FINAL_REASONS = frozenset({"completed", "failed", "canceled", "rejected"})


class Turn(msgspec.Struct, frozen=True):
    """A client's segment and all segments of the agent until the client speaks again.

    A measure is None if an event that it is computed from did not happen.
    """

    segments: tuple[Segment, ...]
    """The segments in order; the client's is first, except in turn 0."""
    number: int = 1
    """Number within the task, from 1; 0 for agent segments that precede any client segment."""
    human_wait: int | None = None
    """Time from the agent's question (input or auth required) to the client's next message."""

    @property
    def client(self) -> Segment | None:
        """The client's segment, or None in turn 0."""
        first = self.segments[0]
        return first if first.speaker == CLIENT else None

    @property
    def agents(self) -> tuple[Segment, ...]:
        """The agent's segments."""
        return tuple(each for each in self.segments if each.speaker == AGENT)

    @property
    def first_event(self) -> int | None:
        """TTFE: from the last byte of the client's segment to the agent's first frame."""
        agents = self.agents
        return agents[0].start - self.client.end if self.client and agents else None

    @property
    def first_output(self) -> int | None:
        """TTFO: from the last byte of the client's segment to the agent's first output."""
        return self._time_to_output(self.client.end) if self.client else None

    @property
    def response(self) -> int | None:
        """Response latency: from the end of the client's activity, if the client reported it, to
        the agent's first output."""
        return (
            self._time_to_output(self.client.activity_end or self.client.end)
            if self.client
            else None
        )

    def _time_to_output(self, origin: int) -> int | None:
        first = min((each.first_output for each in self.agents if each.first_output), default=0)
        return first - origin if first else None

    @property
    def duration(self) -> int | None:
        """Time from the first byte of the client's segment to the agent's last frame."""
        agents = self.agents
        return (
            max(each.end for each in agents) - self.client.began if self.client and agents else None
        )

    @property
    def gaps(self) -> tuple[int, ...]:
        """Pauses between the agent's segments."""
        agents = self.agents
        return tuple(b.start - a.end for a, b in itertools.pairwise(agents))

    @property
    def longest_gap(self) -> int | None:
        """The longest pause between two of the agent's frames."""
        return max((*(each.gap for each in self.agents), *self.gaps), default=None)

    @property
    def idle_share(self) -> float | None:
        """Share of the turn that consists of pauses of more than `IDLE` between two of the agent's
        frames."""
        idle = sum(each.idle for each in self.agents) + sum(gap for gap in self.gaps if gap > IDLE)
        return idle / self.duration if self.duration else None

    @property
    def output_time(self) -> int:
        """Time from the agent's first output to its last; 0 if there is at most one."""
        first = min((each.first_output for each in self.agents if each.first_output), default=0)
        return max((each.last_output for each in self.agents), default=0) - first if first else 0

    @property
    def close(self) -> int | None:
        """Close latency: from the final state to the end of the stream that carried it."""
        last = next(
            (
                each
                for each in reversed(self.segments)
                if each.reason in _FINAL_REASONS and each.closed
            ),
            None,
        )
        return last.closed - last.end if last is not None else None


def turns_of(segments: Iterable[Segment]) -> list[Turn]:
    """Return the turns of all conversations, in order of their beginning; `segments` are ordered by
    id."""
    talks: dict[tuple[str, str, int], list[list[Segment]]] = {}
    order: list[tuple[tuple[str, str, int], int]] = []
    for each in segments:
        key = (each.agent, each.task_id, 0 if each.task_id else each.exchange)
        members = talks.setdefault(key, [])
        if each.speaker == CLIENT or not members:
            order.append((key, len(members)))
            members.append([])
        members[-1].append(each)
    return [_make_turn(talks[key], place) for key, place in order]


def _make_turn(members: list[list[Segment]], index: int) -> Turn:
    first, last, wait = members[index][0], members[index][-1], None
    number = 0 if first.speaker == AGENT else index + (members[0][0].speaker == CLIENT)
    if last.reason in _WAITING_REASONS and index + 1 < len(members):
        wait = members[index + 1][0].start - last.end
    return Turn(tuple(members[index]), number, wait)


def compute_percentile(values: list[int], share: float) -> int:
    """Return the smallest of `values` that at least `share` of them do not exceed; `values` are
    sorted and not empty."""
    return values[max(-(-len(values) * int(share * 1000) // 1000), 1) - 1]
