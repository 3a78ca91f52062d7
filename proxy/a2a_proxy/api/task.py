"""A task, joined over the sessions and files that recorded it."""

from collections.abc import Iterator
from operator import attrgetter

from a2a_proxy.api.rows import Exchange, RecordingFile
from a2a_proxy.model.event import Artifact, state_label
from a2a_proxy.model.values import MissedGenerations, Support
from a2a_proxy.model.values import Task as TaskFacts
from a2a_proxy.recording.read.artifacts import artifacts_of
from a2a_proxy.recording.read.multi_reader import TaskSighting


class Task:
    """A task. If several sessions recorded it, the facts of the one with its latest event count."""

    def __init__(self, views: list[tuple[RecordingFile, TaskSighting]]) -> None:
        self._views = views
        self.views: list[TaskFacts] = [seen.row.task for _, seen in views]
        """The facts of each session, the earliest first."""
        self.facts: TaskFacts = max(self.views, key=lambda view: view.last)
        """The facts of the session with its latest event."""

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.state}>"

    @property
    def files(self) -> list[str]:
        """Short names of the files that contain it."""
        return list(dict.fromkeys(file.member.name for file, _ in self._views))

    @property
    def id(self) -> str:
        """Its id."""
        return self.facts.task_id

    @property
    def context_id(self) -> str:
        """Its context; empty if unknown."""
        return next((view.context_id for view in (self.facts, *self.views) if view.context_id), "")

    @property
    def agent(self) -> str:
        """Address of the agent that owns it."""
        return self.facts.agent

    @property
    def state(self) -> str:
        """Its state, `input-required`; empty if unknown."""
        return state_label(self.facts.state)

    @property
    def states(self) -> list[tuple[int, str]]:
        """Its state changes as (ns since the Unix epoch, state); a change recorded by several files
        appears once."""
        changes = sorted(change for view in self.views for change in view.states)
        kept = [each for at, each in enumerate(changes) if not at or changes[at - 1][1] != each[1]]
        return [(at, state_label(state)) for at, state in kept]

    @property
    def generation(self) -> int:
        """The highest generation; 0 if the agent sends none."""
        return max(view.generation for view in self.views)

    @property
    def generations(self) -> list[tuple[int, int]]:
        """The generations that were seen, as ascending ranges of first and last."""
        ranges: list[tuple[int, int]] = []
        for first, last in sorted(span for view in self.views for span in view.seen):
            if ranges and first <= ranges[-1][1] + 1:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], last)
            else:
                ranges.append((first, last))
        return ranges

    @property
    def missed(self) -> list[MissedGenerations]:
        """Generations missing on a stream, by time, each with the exchange that closed the gap."""
        return sorted((gap for view in self.views for gap in view.missed), key=attrgetter("at"))

    @property
    def support(self) -> Support:
        """Whether the agent numbers its events."""
        return self.facts.support

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the calls that touched it, by time."""
        found = [
            exchange
            for file, seen in self._views
            for exchange in file.exchanges_numbered(seen.row.session, seen.row.task.exchanges)
        ]
        return iter(sorted(found, key=attrgetter("started")))

    def artifacts(self) -> list[Artifact]:
        """Return its artifacts, assembled from their chunks; of artifacts in several sessions, the
        latest version."""
        artifacts: dict[str, Artifact] = {}
        for _, sighting in sorted(self._views, key=lambda view: view[1].row.task.last):
            made = artifacts_of(sighting.member.recording, sighting.row.session, sighting.row.task)
            artifacts.update((name, each.artifact) for name, each in made.items())
        return list(artifacts.values())
