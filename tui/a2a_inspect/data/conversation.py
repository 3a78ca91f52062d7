"""Lines of the Artifact, Trace and Facts tabs about more than one frame, read in one call."""

from collections.abc import Iterator

from a2a_proxy.model.event import Artifact
from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key

MAX_FRAMES = 500
"""Frames of an exchange whose times are listed."""
_MAX_CHUNKS = 200
_MAX_LINES = 5_000
_MAX_LOG_LINES = 100
_ARROWS = {Direction.TO_AGENT: "→", Direction.TO_CLIENT: "←"}


def artifact_lines(
    recording: Recording, exchange_key: int, frame: int | None, until: int = 0
) -> list[str]:
    """Return the assembled artifacts of the exchange's task, each with its chunks; the chunk of
    this frame is marked.

    With `until` (ns since the epoch) the artifacts are shown as they were at that time.
    """
    from a2a_proxy.recording.read.artifacts import artifacts_of

    row = recording.read_exchange(exchange_key)
    if row is None or not row.exchange.task_id:
        return ["(this exchange has no task)"]
    lines: list[str] = []
    for task_row in recording.read_task(row.exchange.task_id):
        if task_row.session != row.session or row.exchange.id not in task_row.task.exchanges:
            continue
        for name, found in artifacts_of(recording, row.session, task_row.task, until).items():
            end = "complete" if found.complete else "not complete"
            lines += ["ARTIFACT", f"name              {make_visible(found.artifact.name or name)}"]
            lines.append(f"id                {make_visible(name)}, {end}")
            chunks = found.chunks[:_MAX_CHUNKS]
            here = (row.exchange.id, frame)
            lines += [
                line
                for each in chunks
                for line in _chunk_line(recording, row.session, name, each, here)
            ]
            if len(found.chunks) > len(chunks):
                lines.append(f"                  and {len(found.chunks) - len(chunks)} more chunks")
            lines += ["", *_artifact_content_lines(found.artifact), ""]
            if len(lines) > _MAX_LINES:
                return [*lines[:_MAX_LINES], "(and more: a2a-inspect show --artifacts)"]
    return lines or ["(its task has no artifacts)"]


def _chunk_line(
    recording: Recording,
    session: int,
    name: str,
    frame: Frame,
    cursor_frame: tuple[int, int | None],
) -> Iterator[str]:
    """Yield `▸ chunk #2.5       +120 ms  1 part  34 B  append`, with a mark if the frame is
    under the cursor."""
    row = recording.read_exchange(make_key(session, frame.exchange))
    assert row is not None
    at = "+" + text.format_duration(max(frame.at - text.latency_origin(row.exchange), 0))
    count = _count_parts(recording, session, frame, row.exchange, name)
    marks = [word for word in ("append", "last_chunk") if getattr(frame, word)]
    place = label_place(session, frame.exchange, frame.seq)
    mark = "▸ " if cursor_frame == (frame.exchange, frame.seq) else ""
    words = (
        f"{place:10}",
        at,
        text.format_count(count, "part"),
        text.format_size(frame.size),
        *marks,
    )
    yield f"{mark + 'chunk':18}{'  '.join(words)}"


def _count_parts(
    recording: Recording, session: int, frame: Frame, exchange: Exchange, name: str
) -> int:
    from a2a_proxy.protocol.event import to_event

    place = make_key(session, frame.exchange)
    row = next(recording.read_frames(place, after=frame.seq - 1, limit=1))
    event = to_event(
        row.frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    )
    found: list[Artifact] = event.task.artifacts if event.task is not None else []
    if event.artifact_update is not None and event.artifact_update.artifact is not None:
        found = [event.artifact_update.artifact]
    return sum(len(each.parts) for each in found if each.artifact_id == name)


def _artifact_content_lines(artifact: Artifact) -> Iterator[str]:
    from a2a_inspect.data.payload_lines import part_text

    for part in artifact.parts:
        yield from (f"  {make_visible(line)}" for line in part_text(part).split("\n") if line)


def timing_lines(
    recording: Recording, exchange_key: int, frame: int | None, until: int = 0
) -> list[str]:
    """Return the time of each frame since the start of the exchange and since the previous frame in
    its direction.

    With `until` (ns since the epoch) only frames that had arrived by then are listed.
    """
    row = recording.read_exchange(exchange_key)
    if row is None:
        return []
    before: dict[Direction, int] = {}
    lines = ["FRAMES"]
    for each in recording.read_frames(exchange_key, limit=MAX_FRAMES, payloads=False):
        one = each.frame
        if until and one.at > until:
            break
        since = one.at - before.get(one.direction, one.at)
        before[one.direction] = one.at
        start = "+" + text.format_duration(max(one.at - row.exchange.started, 0))
        gap = f"{text.format_duration(since)} after the previous frame" if since else ""
        mark = "▸ " if one.seq == frame else ""
        name = f"{mark}{one.seq} {_ARROWS[one.direction]} {one.kind.name.lower()}"
        lines.append(f"{name:18}{start:10}{gap}".rstrip())
    if len(lines) > MAX_FRAMES:
        lines.append("(and more: a2a-inspect show)")
    return lines


def process_lines(recording: Recording, exchange_key: int) -> list[str]:
    """Return lines about the agent's process of a stdio call: its log and its exit. Empty for other
    calls."""
    from a2a_proxy.protocol.describe import describe_frame

    row = recording.read_exchange(exchange_key)
    connection_row = (
        recording.read_connection(make_key(row.session, row.exchange.connection))
        if row is not None
        else None
    )
    if (
        row is None
        or connection_row is None
        or connection_row.connection.facts.transport != "stdio"
    ):
        return []
    process = connection_row.connection
    lines = [
        "PROCESS",
        f"{'command':18}{make_visible(process.upstream)}",
        f"{'id':18}{make_visible(process.peer)}",
    ]
    lines.append(f"{'end':18}{make_visible(process.how) or 'still runs'}")
    frames = [each.frame for each in recording.connection_frames(connection_row.key)]
    if len(frames) > _MAX_LOG_LINES:
        lines.append(
            f"(the last {_MAX_LOG_LINES} of {len(frames)} lines: a2a-inspect show has all)"
        )
    last = frames[-_MAX_LOG_LINES:]
    return [
        *lines,
        *(
            f"{text.format_time(each.at):18}{_ARROWS[each.direction]} {describe_frame(each)}"
            for each in last
        ),
        "",
    ]
