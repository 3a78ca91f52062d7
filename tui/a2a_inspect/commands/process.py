"""Lines and objects about a stdio agent's process: its log, output that belongs to no call, and its exit."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Connection
from a2a_proxy.model.frame import Frame
from a2a_proxy.present import text
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key

_ARROWS = {Direction.TO_AGENT: "-->", Direction.TO_CLIENT: "<--"}


def _stdio_processes(recording: Recording, session: SessionRow) -> Iterator[Connection]:
    return (row.connection for row in recording.connections(session.id) if row.connection.facts.transport == "stdio")


def _process_frames(recording: Recording, session: SessionRow, process: Connection) -> Iterator[Frame]:
    return (row.frame for row in recording.connection_frames(make_key(session.id, process.id)))


def process_lines(recording: Recording, session: SessionRow) -> Iterator[str]:
    """Yield `process 4711  npx run my-agent  client eof, then agent exited with code 0`, then frames without a call."""
    for process in _stdio_processes(recording, session):
        who = process.peer.removeprefix("pid ")
        yield f"process {make_visible(who)}  {make_visible(process.upstream)}  {make_visible(process.how) or 'runs'}"
        for frame in _process_frames(recording, session, process):
            yield f"    {text.format_time(frame.at):>14} {_ARROWS[frame.direction]} {describe_frame(frame)}"


def process_objects(recording: Recording, session: SessionRow) -> Iterator[dict[str, object]]:
    """Yield the same data as JSON with stable names."""
    for process in _stdio_processes(recording, session):
        frames = [
            {
                "at": text.format_utc(frame.at),
                "direction": frame.direction.name.lower(),
                "kind": frame.kind.name.lower(),
                "note": frame.note,
                "framing": frame.framing,
                "text": frame.payload.decode("utf-8", "replace"),
            }
            for frame in _process_frames(recording, session, process)
        ]
        facts = {"id": process.id, "process": process.peer, "command": process.upstream, "how": process.how}
        yield {"session": session.id, "agent_process": {**facts, "frames": frames}}
