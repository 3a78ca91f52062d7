"""Segments, interruptions and hand-offs in the file: as they went in, replaced by later snapshots,
in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.values import Changes, Handoff, Interruption, Segment
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, make_key
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.tools.prune import remove_sessions
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, idents, numbers, texts, times

FACTS = SessionFacts(uuid="u", tool="test", started=STARTED)
_maybe = st.just(0) | times


def _whose(number: int) -> dict[str, Any]:
    return {"id": st.just(number), "agent": texts, "task_id": idents, "context_id": idents}


@st.composite
def segments(draw: st.DrawFn, number: int) -> Segment:
    start = draw(times)
    end = start + draw(numbers)
    plain = dict.fromkeys(
        (
            "turn",
            "exchange",
            "seq",
            "last_exchange",
            "last_seq",
            "frames",
            "bytes",
            "outputs",
            "gap",
        ),
        numbers,
    )
    rare = {name: st.just(0) | numbers for name in ("idle", "generation_first", "generation_last")}
    moments = dict.fromkeys(
        ("ended", "first_output", "last_output", "activity_end", "closed"), _maybe
    )
    return draw(
        st.builds(
            Segment,
            **_whose(number),
            **plain,
            **rare,
            **moments,
            speaker=st.sampled_from(["client", "agent"]),
            reason=texts,
            author=st.sampled_from(["", "planner"]),
            began=st.just(start - draw(numbers)),
            start=st.just(start),
            end=st.just(end),
        )
    )


def interruptions(number: int) -> st.SearchStrategy[Interruption]:
    counted = dict.fromkeys(
        ("segment", "exchange", "seq", "residual_frames", "residual_bytes", "wasted"), numbers
    )
    moments = dict.fromkeys(("ended", "last_residual", "reaction"), _maybe)
    return st.builds(
        Interruption, **_whose(number), **counted, **moments, kind=texts, outcome=texts, at=times
    )


def handoffs(number: int) -> st.SearchStrategy[Handoff]:
    counted = dict.fromkeys(("segment", "to_exchange", "exchange", "seq", "briefing"), numbers)
    moments = dict.fromkeys(("ended", "first_output"), _maybe)
    words = dict.fromkeys(("kind", "evidence", "to_agent"), texts)
    return st.builds(
        Handoff, **_whose(number), **counted, **moments, **words, to_task=idents, at=times
    )


def _read(db: Any) -> Changes:
    recording = Recording.from_connection(db, "test")
    return Changes(
        [],
        [],
        [],
        segments=[row.segment for row in recording.read_segments()],
        interruptions=[row.interruption for row in recording.read_interruptions()],
        handoffs=[row.handoff for row in recording.read_handoffs()],
    )


@given(st.tuples(segments(1), segments(7)), interruptions(3), handoffs(2))
def test_stored_segments_are_read_back_unchanged(
    cut: tuple[Segment, Segment], broken: Interruption, handoff: Handoff
) -> None:
    changes = Changes([], [], [], segments=list(cut), interruptions=[broken], handoffs=[handoff])
    db = open_private()
    Writer.on_connection(db, FACTS).write([], [], changes)
    assert _read(db) == changes
    db.close()


def _segment(number: int, **fields: Any) -> Segment:
    members = {
        "turn": 1,
        "exchange": 4,
        "seq": 0,
        "last_exchange": 4,
        "last_seq": 0,
        "began": STARTED + 5,
    }
    members |= {"start": STARTED + 10, "end": STARTED + 30, **fields}
    return Segment(number, "agent:1", "t", "c", "agent", **members)


def test_a_later_snapshot_replaces_the_earlier_one() -> None:
    db = open_private()
    writer = Writer.on_connection(db, FACTS)
    writer.write([], [], Changes([], [], [], segments=[_segment(1), _segment(2)]))
    over = _segment(1, ended=STARTED + 50, reason="speaker", frames=3)
    writer.write([], [], Changes([], [], [], segments=[over]))
    assert _read(db).segments == [over, _segment(2)]
    after = Recording.from_connection(db, "test").read_segments(after=make_key(1, 1))
    assert [(row.key, row.session, row.segment.id) for row in after] == [(make_key(1, 2), 1, 2)]
    db.close()


def test_views_show_segments_in_words() -> None:
    db = open_private()
    segment = _segment(
        1,
        ended=STARTED + 50,
        reason="completed",
        first_output=STARTED + 12,
        last_output=STARTED + 25,
    )
    broken = Interruption(
        1, "agent:1", "t", "c", "message", 1, 5, 0, STARTED + 20, outcome="yielded"
    )
    broken = msgspec.structs.replace(broken, last_residual=STARTED + 26, reaction=STARTED + 29)
    handoff = Handoff(
        1, "delegation", "context", "agent:1", "t", "c", 1, "agent:2", "k", 6, 6, 0, STARTED + 14
    )
    changes = Changes([], [], [], segments=[segment], interruptions=[broken], handoffs=[handoff])
    Writer.on_connection(db, FACTS).write([], [], changes)
    Recording.from_connection(db, "test")
    found = db.execute(
        'SELECT agent, task_id, speaker, start, "end", '
        "ended, reason, first_output, last_output FROM segments"
    )
    times = [STARTED + each for each in (10, 30, 50)]
    assert found.fetchall() == [
        ("agent:1", "t", "agent", *times, "completed", STARTED + 12, STARTED + 25)
    ]
    found = db.execute(
        "SELECT kind, segment, at, ended, outcome, latency, reaction_time FROM interruptions"
    )
    assert found.fetchall() == [("message", 1, STARTED + 20, None, "yielded", 6, 9)]
    found = db.execute("SELECT kind, evidence, agent, to_agent, to_task, latency FROM handoffs")
    assert found.fetchall() == [("delegation", "context", "agent:1", "agent:2", "k", None)]
    db.close()


def test_deleting_a_session_deletes_its_segments_and_keeps_shared_names(tmp_path: Path) -> None:
    handoff = Handoff(
        1, "transfer", "author", "a", "task-1", "context-1", 1, "b", "task-2", 1, 1, 0, STARTED
    )
    broken = Interruption(1, "a", "task-3", "context-3", "message", 1, 5, 0, STARTED + 20)
    for uuid in ("one", "two"):
        writer = Writer(tmp_path / "r.db", SessionFacts(uuid=uuid, tool="test", started=STARTED))
        segment = msgspec.structs.replace(
            _segment(1), task_id="task-4", context_id=f"context-{uuid}"
        )
        changes = Changes(
            [], [], [], segments=[segment], interruptions=[broken], handoffs=[handoff]
        )
        writer.write([], [], changes)
        writer.finish(STARTED + 100)
    remove_sessions(tmp_path / "r.db", [1])
    with Recording(tmp_path / "r.db") as recording:
        assert [row.session for row in recording.read_segments()] == [2]
        assert [row.segment.context_id for row in recording.read_segments()] == ["context-two"]
        assert [row.interruption for row in recording.read_interruptions()] == [broken]
        assert [row.handoff for row in recording.read_handoffs()] == [handoff]
        values = {value for (value,) in recording.db.execute("SELECT value FROM ident_text")}
        assert "context-one" not in values
