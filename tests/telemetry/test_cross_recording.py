"""Recordings of several proxies: links between them, without changing ids."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.offline import RecordingExport, open_recording_links
from a2a_proxy.telemetry.values import SpanValue
from support_inspect import TASK
from support_otlp import Kept
from support_recording import STARTED
from support_several import TRACE, begin, call, pair


def exported(*paths: Path) -> list[list[SpanValue]]:
    """The spans of each."""
    with ExitStack() as all_of_them:
        several = all_of_them.enter_context(MultiReader(paths))
        linked = all_of_them.enter_context(open_recording_links(several))
        sinks = [Kept() for _ in paths]
        for number, (member, sessions) in enumerate(several.own_sessions()):
            RecordingExport(
                member.recording, sinks[number], beyond=linked.session_links(number)
            ).run(None, sessions)
        assert [sink.told for sink in sinks] == [[]] * len(sinks)
        return [sink.got for sink in sinks]


def alone(path: Path) -> list[SpanValue]:
    sink = Kept()
    with Recording(path) as recording:
        RecordingExport(recording, sink).run(None)
    assert sink.told == []
    return sink.got


def test_a_call_links_to_the_hand_off_in_another_recording(tmp_path: Path) -> None:
    paths = pair(tmp_path)
    first, second = exported(*paths)
    [link] = second[0].links
    assert (link.context, link.attributes["a2a_proxy.link"]) == (first[0].context, "handoff")
    assert (link.attributes["a2a_proxy.handoff.evidence"], first[0].context.trace) == (
        "traceparent",
        TRACE,
    )
    assert second[0].context.trace == TRACE
    for got, path in zip((first, second), paths, strict=True):
        assert [replace(span, links=()) for span in got] == [
            replace(span, links=()) for span in alone(path)
        ]
    assert first == alone(paths[0])


def test_a_task_in_two_recordings_is_one_task(tmp_path: Path) -> None:
    """Two proxies in front of one agent."""
    paths = tmp_path / "a.a2a.db", tmp_path / "b.a2a.db"
    for session, path in ((1, paths[0]), (2, paths[1])):
        writer = begin(path, session)
        call(writer, 1, 1, session)
        writer.finish(STARTED + 10**10)
    [[began], [later]] = exported(*paths)
    assert [(link.context, link.attributes) for link in later.links] == [
        (began.context, {"a2a_proxy.link": "task", "a2a.task.id": TASK})
    ]
    assert began.links == ()


def test_a_session_in_two_files_is_exported_once(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    copy = tmp_path / "copy.a2a.db"
    copy.write_bytes(first.read_bytes())
    got = exported(first, second, copy)
    assert [len(each) for each in got] == [3, 2, 0]
