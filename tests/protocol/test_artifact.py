from __future__ import annotations

from a2a_proxy.model.event import Artifact, ArtifactUpdate, Event, Part, TaskSnapshot
from a2a_proxy.protocol.artifact import assemble_artifacts


def chunk(
    text: str,
    append: bool = False,
    last: bool = False,
    name: str = "",
    artifact_id: str = "a",
    task_id: str = "t",
) -> Event:
    artifact = Artifact(artifact_id=artifact_id, name=name, parts=[Part(text=text)])
    return Event(
        artifact_update=ArtifactUpdate(
            task_id=task_id, artifact=artifact, append=append, last_chunk=last
        )
    )


def snapshot(*texts: str) -> Event:
    return Event(
        task=TaskSnapshot(
            id="t", artifacts=[Artifact(artifact_id="a", parts=[Part(text=text) for text in texts])]
        )
    )


def texts(events: list[Event]) -> list[str | None]:
    return [part.text for part in assemble_artifacts(list(enumerate(events)))["a"].artifact.parts]


def test_appended_parts() -> None:
    """Chunks append to the part list; the first name that is not empty stays; `lastChunk`
    completes."""
    made = assemble_artifacts(
        [
            (1, chunk("x")),
            (2, chunk("y", append=True, name="report")),
            (3, chunk("z", True, True, "other")),
        ]
    )["a"]

    assert [part.text for part in made.artifact.parts] == ["x", "y", "z"]
    assert (made.chunks, made.complete, made.artifact.name) == ([1, 2, 3], True, "report")


def test_replacement() -> None:
    """`append` false on a known id replaces it, and its evidence."""
    made = assemble_artifacts([(1, chunk("x", last=True)), (2, chunk("y"))])["a"]

    assert (texts([chunk("x"), chunk("y")]), made.chunks, made.complete) == (["y"], [2], False)


def test_append_without_a_start() -> None:
    """A chunk whose beginning was not seen still counts."""
    assert texts([chunk("y", append=True)]) == ["y"]


def test_snapshots() -> None:
    """A snapshot starts, repeats or overtakes what chunks gave; an older one takes nothing away."""
    assert texts([snapshot("x"), chunk("y", append=True)]) == ["x", "y"]
    assert texts([chunk("x"), snapshot("x", "y")]) == ["x", "y"]
    assert texts([chunk("x"), chunk("y", append=True), snapshot("x")]) == ["x", "y"]
    repeated = assemble_artifacts([(1, chunk("x")), (2, snapshot("x"))])["a"]
    assert (repeated.chunks, repeated.complete) == ([1], True)


def test_artifacts_of_other_tasks_are_excluded() -> None:
    """Artifacts of another task with the same id are left out."""
    events = [(1, chunk("x")), (2, chunk("y", task_id="u")), (3, Event())]

    assert [part.text for part in assemble_artifacts(events, "u")["a"].artifact.parts] == ["y"]
    assert assemble_artifacts(events, "v") == {}


def test_an_update_replaces_unless_it_says_append() -> None:
    updates = [
        Event(
            artifact_update=ArtifactUpdate(
                task_id="t", artifact=Artifact(artifact_id="a", parts=[Part(text=text)])
            )
        )
        for text in ("x", "y")
    ]
    assert texts(updates) == ["y"]
