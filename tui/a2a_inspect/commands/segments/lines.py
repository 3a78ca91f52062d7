"""Conversations as text: context, task, turn, what each side says, what interrupts it and where it goes."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.segments.conversation_tree import ConversationTree, SessionConversations, Tool
from a2a_inspect.commands.segments.summary import MeasureValues
from a2a_inspect.commands.table import columns
from a2a_proxy.model.segment import AGENT, Handoff, Interruption, Segment
from a2a_proxy.present import text
from a2a_proxy.protocol.segments.content import Media, ToolEvent
from a2a_proxy.protocol.segments.measures import Turn
from a2a_proxy.protocol.text import to_one_line, make_visible
from a2a_proxy.recording.read.conversations import SegmentContent

_EXCERPT = 60
"""Characters of what is said."""
_NONE = SegmentContent()


def talk_lines(talk: ConversationTree, gathered: SessionConversations, depth: int) -> Iterator[str]:
    """A conversation, and beneath it those that it has handed over to."""
    indent = "  " * depth
    name = f"task {make_visible(talk.task_id)}" if talk.task_id else "without a task"
    yield f"{indent}{name}  agent {make_visible(talk.agent)}"
    for turn in talk.turns:
        yield f"{indent}  {_turn(turn)}"
        zero = turn.client.end if turn.client else turn.segments[0].start
        for segment in turn.segments:
            yield f"{indent}    {_segment(segment, gathered.contents.get(segment.id, _NONE), zero)}"
            marks = [(each.at, interruption_words(each)) for each in talk.interruptions if each.segment == segment.id]
            marks += [(h.at, _handoff(h, gathered)) for h in talk.handoffs if h.segment == segment.id]
            for at, words in sorted(marks):
                yield f"{indent}    {_moment(at, zero)}     {words}"
    for tool in talk.tools:
        yield f"{indent}  {_tool(tool)}"
    for child in talk.children:
        yield from talk_lines(child, gathered, depth + 2)


def _turn(turn: Turn) -> str:
    first = turn.segments[0]
    measures = [
        _measure("first event", turn.first_event),
        _measure("first output", turn.first_output),
        _measure("response", turn.response) if turn.response != turn.first_output else "",
        _measure("took", turn.duration),
        f"idle {turn.idle_share:.0%}" if turn.idle_share else "",
        _measure("closed after", turn.close),
        _measure("person answered after", turn.human_wait),
    ]
    name = f"turn {turn.number}" if turn.number else "before any turn"
    return f"{name}  {text.clock(first.began)}  {', '.join(each for each in measures if each)}".rstrip(" ")


def _measure(name: str, value: int | None) -> str:
    return f"{name} {span(value)}" if value is not None else ""


def span(value: int) -> str:
    """A duration that may be negative: the agent spoke before the client was done."""
    return f"-{text.duration(-value)}" if value < 0 else text.duration(value)


def _moment(at: int, zero: int) -> str:
    return f"{('+' if at >= zero else '') + span(at - zero):>10}"


def _segment(segment: Segment, content: SegmentContent, zero: int) -> str:
    arrow = "<--" if segment.speaker == AGENT else "-->"
    parts = [
        f"{_moment(segment.start, zero)} {arrow}",
        f"{segment.speaker}{f' {make_visible(segment.author)}' if segment.author else ''}",
        segment.reason or "(open)",
        text.duration(segment.end - segment.start) if segment.frames > 1 else "",
        text.plural(segment.frames, "frame"),
        _place(segment),
        _generations(segment),
        _quote(content.text),
        *(_media(each.what) for each in content.heard if isinstance(each.what, Media)),
        *(_called(each.what) for each in content.heard if isinstance(each.what, ToolEvent)),
    ]
    return "  ".join(each for each in parts if each)


def _quote(said: str) -> str:
    """The beginning of it, on one line."""
    words = to_one_line(said[: 2 * _EXCERPT].replace("\n", " "), _EXCERPT)
    return f'"{words}"' if words else ""


def _place(segment: Segment) -> str:
    first, last = f"#{segment.exchange}.{segment.seq}", f"#{segment.last_exchange}.{segment.last_seq}"
    return first if first == last else f"{first} to {last}"


def _generations(segment: Segment) -> str:
    first, last = segment.generation_first, segment.generation_last
    if not first:
        return ""
    return f"generation {first}" if first == last else f"generations {first}-{last}"


def _media(media: Media) -> str:
    about = " ".join(make_visible(word) for word in (media.filename, media.media_type) if word)
    where = make_visible(to_one_line(media.url, _EXCERPT)) if media.url else text.size(len(media.data))
    return f"[{about} {where}]".replace("[ ", "[")


def _called(tool: ToolEvent) -> str:
    return f"[{'answer of' if tool.response else 'calls'} {make_visible(to_one_line(tool.name, _EXCERPT))}]"


def interruption_words(broken: Interruption) -> str:
    """One line about an interruption."""
    parts = [
        f"interrupted by {_BY[broken.kind]} #{broken.exchange}.{broken.seq}",
        broken.outcome or "(open)",
        _measure("latency", broken.latency),
        _measure("reaction", broken.reaction_time),
    ]
    if broken.residual_frames:
        residue = f"{text.plural(broken.residual_frames, 'frame')} after it, {text.size(broken.residual_bytes)}"
        parts.append(f"{residue}, {text.size(broken.wasted)} of content wasted")
    return "  ".join(each for each in parts if each)


_BY = {
    "message": "a message",
    "cancel": "a cancel",
    "event": "a media event",
    "context": "a new task in the context (weak)",
}


def handoff_words(handoff: Handoff) -> str:
    """One line about a hand-off, without what was carried over."""
    to = f"{make_visible(handoff.to_agent)}{f' task {make_visible(handoff.to_task)}' if handoff.to_task else ''}"
    parts = [
        f"hand-off to {to}  {handoff.kind} by {handoff.evidence}  #{handoff.exchange}.{handoff.seq}",
        _measure("latency", handoff.latency) or ("no output" if handoff.ended else "(open)"),
        f"briefing {text.size(handoff.briefing)}" if handoff.briefing else "",
    ]
    return "  ".join(each for each in parts if each)


def _handoff(handoff: Handoff, gathered: SessionConversations) -> str:
    carried = gathered.carried.get(handoff.id)
    return handoff_words(handoff) + (f"  {carried:.0%} of the context carried over" if carried is not None else "")


def _tool(tool: Tool) -> str:
    parts = [
        f"tool {make_visible(to_one_line(tool.name, _EXCERPT))}",
        _measure("latency", tool.latency),
        text.plural(len(tool.answers), "answer"),
        _measure("one every", tool.period),
        "" if tool.completed else "abandoned",
    ]
    return "  ".join(each for each in parts if each)


def summary_lines(spans: MeasureValues) -> Iterator[str]:
    """The table of measures; nothing where there is no value."""
    rows = [
        (name.replace("_", " "), str(each.count), span(each.p50), span(each.p95), span(each.most))
        for name, each in spans.figures()
    ]
    if rows:
        yield from columns(("MEASURE", "COUNT", "P50", "P95", "MAX"), rows)
