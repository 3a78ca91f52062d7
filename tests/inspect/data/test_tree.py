"""The tree of a recording, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.data import tree
from a2a_inspect.data.next_places import next_finding, next_frame_of_task
from a2a_inspect.data.tree import TreeBranch, TreeLevel, read_children
from a2a_proxy.model.values import Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, request, status, writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two sessions; in the first a task of two calls, a call without a task, another context."""
    made, second = writer(tmp_path / "r.db"), writer(tmp_path / "r.db", 2)
    calls = [
        exchange(1, context_id="c1", task_id="t1"),
        exchange(2, context_id="c1", task_id=""),
        exchange(3, context_id="c2", task_id="t2\x1b[2J"),
        exchange(4, context_id="c1", task_id="t1"),
        exchange(5, context_id="", task_id="", operation="", method="GET", target="/card"),
    ]
    frames = [request(1), status(1, 1, "Thinking"), request(3), request(4), status(4, 1, "Done")]
    made.write(frames, changes=changes(*calls))
    second.write([], changes=changes(exchange(1, context_id="c1", task_id="77")))
    made.close()
    second.close()
    return tmp_path / "r.db"


def labels(recording: Recording, of: TreeBranch | None) -> list[str]:
    return [each.label for each in read_children(recording, of).branches]


def test_from_the_session_down_to_the_frame(path: Path) -> None:
    """Each level with its number; those of one context or task do not have those of another;
    nothing acts."""
    with Recording(path) as recording:
        first, second = read_children(recording, None).branches
        assert [first.label.split("  ")[0], first.label.split("  ")[2]] == [
            "session 1",
            "5 exchanges",
        ]
        contexts = read_children(recording, first).branches
        assert [each.label for each in contexts] == [
            "context c1  3",
            "context c2  1",
            "no context  1",
        ]
        assert [each.words for each in contexts] == ["Plan a day", "Plan a day", ""]
        tasks = read_children(recording, contexts[0]).branches
        assert [each.label for each in tasks] == ["task t1  2", "no task  1"]
        assert [each.words for each in tasks] == ["Plan a day", ""]
        assert labels(recording, contexts[1]) == ["task t2␛[2J  1"]
        calls = read_children(recording, tasks[0]).branches
        assert [each.label for each in calls] == [
            "#1 SendStreamingMessage ok  2",
            "#4 SendStreamingMessage ok  2",
        ]
        assert labels(recording, calls[0]) == ["0 → request", "1 ← status working"]
        assert labels(recording, tasks[1]) == ["#2 SendStreamingMessage ok  0"]
        other = read_children(recording, second).branches[0]
        assert (other.level, other.context_id) == (TreeLevel.CONTEXT, "c1")
        assert read_children(recording, other).branches[0].task_id == "77"


def test_branches_are_read_page_by_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of the last one begins the next page, on every level."""
    with Recording(path) as recording:
        every: list[list[str]] = []
        node: TreeBranch | None = None
        for _ in TreeLevel:
            every.append(labels(recording, node))
            node = read_children(recording, node).branches[0]
        monkeypatch.setattr(tree, "CHILDREN_PER_PAGE", 1)
        node = None
        for whole in every:
            found, after = [], None
            while True:
                page = read_children(recording, node, after)
                found += [each.label for each in page.branches]
                if not page.has_more:
                    break
                after = page.branches[-1].page_cursor
            assert found == whole
            node = read_children(recording, node).branches[0]


def test_a_branch_keeps_its_identity_while_it_grows(path: Path) -> None:
    """Another label, the same branch."""
    with Recording(path) as recording:
        session = read_children(recording, None).branches[0]
        context = read_children(recording, session).branches[0]
    assert (
        context.identity
        == TreeBranch(TreeLevel.CONTEXT, "other", 1, context.context, "c1", exchange=99).identity
    )
    assert context.identity != session.identity


def test_the_frames_of_a_task(path: Path) -> None:
    """From one of its calls to the next, and back; a call without a task has no neighbour."""
    with Recording(path) as recording:
        steps = [(make_key(1, 1), -1)]
        while (place := next_frame_of_task(recording, steps[-1], 1)) is not None:
            steps.append(place)
        assert steps[1:] == [
            (make_key(1, 1), 0),
            (make_key(1, 1), 1),
            (make_key(1, 4), 0),
            (make_key(1, 4), 1),
        ]
        assert next_frame_of_task(recording, (make_key(1, 4), 0), -1) == (make_key(1, 1), 1)
        assert next_frame_of_task(recording, (make_key(1, 1), 0), -1) is None
        assert next_frame_of_task(recording, (make_key(1, 2), -1), 1) is None


def test_the_next_finding_is_looked_up_in_the_index(path: Path) -> None:
    """Ten thousand findings are no reason to look at all of them for each key."""
    asked: list[str] = []
    with Recording(path) as recording:
        recording.db.set_trace_callback(asked.append)
        assert next_finding(recording, (make_key(1, 1), -1), 1, lambda _: True) is None
        assert (
            next_finding(recording, (make_key(1, 1), -1), -1, lambda _: True, Severity.ERROR)
            is None
        )
        recording.db.set_trace_callback(None)
        plans = [recording.db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in asked]
    assert len(plans) == 2
    for plan in plans:
        assert [
            words for *_, words in plan if "finding_place" in words and words.startswith("SEARCH")
        ], plan
        assert not [words for *_, words in plan if "TEMP B-TREE" in words]
