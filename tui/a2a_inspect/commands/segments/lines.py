"""Conversations as text: contexts, tasks, turns, the content of each speaker, interruptions and
hand-offs."""

from collections.abc import Iterator

from a2a_inspect.commands.segments.conversation_tree import (
    ConversationTree,
    SessionConversations,
    ToolCall,
)
from a2a_inspect.commands.segments.summary import MeasureValues
from a2a_inspect.data.segment_words import (
    handoff_words,
    interruption_words,
    measure_words,
    signed_duration,
)
from a2a_inspect.widgets.table import table_lines
from a2a_proxy.model.values import AGENT, Handoff, Segment
from a2a_proxy.present import text
from a2a_proxy.protocol.segments.content import Media, ToolEvent
from a2a_proxy.protocol.segments.measures import Turn
from a2a_proxy.protocol.text import make_visible, to_one_line
from a2a_proxy.recording.read.conversations import SegmentContent

_MAX_EXCERPT = 60
"""Maximum characters of quoted content."""
_NO_CONTENT = SegmentContent()


def conversation_lines(
    conversation: ConversationTree, gathered: SessionConversations, depth: int
) -> Iterator[str]:
    """Yield the lines of a conversation, then those of the conversations it handed over to."""
    indent = "  " * depth
    name = (
        f"task {make_visible(conversation.task_id)}" if conversation.task_id else "without a task"
    )
    yield f"{indent}{name}  agent {make_visible(gathered.names.find(conversation.agent))}"
    for turn in conversation.turns:
        yield f"{indent}  {_turn_line(turn)}"
        zero = turn.client.end if turn.client else turn.segments[0].start
        for segment in turn.segments:
            yield (
                f"{indent}    "
                f"{_segment_line(segment, gathered.contents.get(segment.id, _NO_CONTENT), zero)}"
            )
            marks = [
                (each.at, interruption_words(each))
                for each in conversation.interruptions
                if each.segment == segment.id
            ]
            marks += [
                (h.at, _handoff_line(h, gathered))
                for h in conversation.handoffs
                if h.segment == segment.id
            ]
            for at, words in sorted(marks):
                yield f"{indent}    {_format_offset(at, zero)}     {words}"
    for tool in conversation.tools:
        yield f"{indent}  {_tool_line(tool)}"
    for child in conversation.children:
        yield from conversation_lines(child, gathered, depth + 2)


def _turn_line(turn: Turn) -> str:
    first = turn.segments[0]
    measures = [
        measure_words("first event", turn.first_event),
        measure_words("first output", turn.first_output),
        measure_words("response", turn.response) if turn.response != turn.first_output else "",
        measure_words("took", turn.duration),
        f"idle {turn.idle_share:.0%}" if turn.idle_share else "",
        measure_words("closed after", turn.close),
        measure_words("person answered after", turn.human_wait),
    ]
    name = f"turn {turn.number}" if turn.number else "before any turn"
    return (
        f"{name}  {text.format_time(first.began)}  {', '.join(each for each in measures if each)}"
    ).rstrip(" ")


def _format_offset(at: int, zero: int) -> str:
    return f"{('+' if at >= zero else '') + signed_duration(at - zero):>10}"


def _segment_line(segment: Segment, content: SegmentContent, zero: int) -> str:
    arrow = "<--" if segment.speaker == AGENT else "-->"
    # The beginning of the content, on one line.
    words = to_one_line(content.text[: 2 * _MAX_EXCERPT].replace("\n", " "), _MAX_EXCERPT)
    first, last = (
        f"#{segment.exchange}.{segment.seq}",
        f"#{segment.last_exchange}.{segment.last_seq}",
    )
    parts = [
        f"{_format_offset(segment.start, zero)} {arrow}",
        f"{segment.speaker}{f' {make_visible(segment.author)}' if segment.author else ''}",
        segment.reason or "(open)",
        text.format_duration(segment.end - segment.start) if segment.frames > 1 else "",
        text.format_count(segment.frames, "frame"),
        first if first == last else f"{first} to {last}",
        _generation_range(segment),
        f'"{words}"' if words else "",
        *(_media_words(each.what) for each in content.heard if isinstance(each.what, Media)),
        *(
            _tool_event_words(each.what)
            for each in content.heard
            if isinstance(each.what, ToolEvent)
        ),
    ]
    return "  ".join(each for each in parts if each)


def _generation_range(segment: Segment) -> str:
    first, last = segment.generation_first, segment.generation_last
    if not first:
        return ""
    return f"generation {first}" if first == last else f"generations {first}-{last}"


def _media_words(media: Media) -> str:
    about = " ".join(make_visible(word) for word in (media.filename, media.media_type) if word)
    where = (
        make_visible(to_one_line(media.url, _MAX_EXCERPT))
        if media.url
        else text.format_size(len(media.data))
    )
    return f"[{about} {where}]".replace("[ ", "[")


def _tool_event_words(tool: ToolEvent) -> str:
    return (
        f"[{'answer of' if tool.response else 'calls'} "
        f"{make_visible(to_one_line(tool.name, _MAX_EXCERPT))}]"
    )


def _handoff_line(handoff: Handoff, gathered: SessionConversations) -> str:
    carried = gathered.carried_shares.get(handoff.id)
    return handoff_words(handoff, gathered.names) + (
        f"  {carried:.0%} of the context carried over" if carried is not None else ""
    )


def _tool_line(tool: ToolCall) -> str:
    parts = [
        f"tool {make_visible(to_one_line(tool.name, _MAX_EXCERPT))}",
        measure_words("latency", tool.latency),
        text.format_count(len(tool.answers), "answer"),
        measure_words("one every", tool.period),
        "" if tool.completed else "abandoned",
    ]
    return "  ".join(each for each in parts if each)


def summary_lines(spans: MeasureValues) -> Iterator[str]:
    """Yield the table of measures; nothing without values."""
    rows = [
        (
            name.replace("_", " "),
            str(each.count),
            signed_duration(each.p50),
            signed_duration(each.p95),
            signed_duration(each.most),
        )
        for name, each in spans.summarise_measures()
    ]
    if rows:
        yield from table_lines(("MEASURE", "COUNT", "P50", "P95", "MAX"), rows)
