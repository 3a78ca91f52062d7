"""Segments, turns, interruptions, hand-offs and tools as JSON: stable names, times in UTC, spans in ns."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.segments.conversation_tree import ConversationTree, SessionConversations, Tool
from a2a_inspect.commands.segments.summary import MeasureValues
from a2a_proxy.model.segment import Handoff, Interruption, Segment
from a2a_proxy.present import text
from a2a_proxy.protocol.segments.content import Media, ToolEvent
from a2a_proxy.protocol.segments.measures import Turn
from a2a_proxy.recording.read.conversations import SegmentContent, SegmentEvent

Object = dict[str, object]


def talk_objects(session: int, talk: ConversationTree, gathered: SessionConversations) -> Iterator[Object]:
    """Everything about one conversation, each turn after its segments."""
    about = {"session": session, "agent": talk.agent, "task_id": talk.task_id, "context_id": talk.context_id}
    for turn in talk.turns:
        for segment in turn.segments:
            yield {
                "what": "segment",
                **about,
                **segment_object(segment, gathered.contents.get(segment.id, SegmentContent())),
            }
        yield {"what": "turn", **about, **turn_object(turn, gathered.contents)}
    for broken in talk.interruptions:
        yield {"what": "interruption", **about, **interruption_object(broken)}
    for handoff in talk.handoffs:
        yield {"what": "handoff", **about, **handoff_object(handoff, gathered.carried.get(handoff.id))}
    for tool in talk.tools:
        yield {"what": "tool", **about, **tool_object(tool)}


def segment_object(segment: Segment, content: SegmentContent) -> Object:
    """What one side says."""
    return {
        "number": segment.id,
        "speaker": segment.speaker,
        "author": segment.author or None,
        "turn": segment.turn,
        "began": text.utc(segment.began),
        "start": text.utc(segment.start),
        "end": text.utc(segment.end),
        "ended": text.utc(segment.ended) if segment.ended else None,
        "reason": segment.reason or None,
        "duration_ns": segment.end - segment.start,
        "frames": segment.frames,
        "bytes": segment.bytes,
        "outputs": segment.outputs,
        "longest_gap_ns": segment.gap,
        "first_frame": {"exchange": segment.exchange, "seq": segment.seq},
        "last_frame": {"exchange": segment.last_exchange, "seq": segment.last_seq},
        "generations": [segment.generation_first, segment.generation_last] if segment.generation_first else None,
        "text": content.text,
        "characters": content.characters,
        "media": [media_object(each, each.what) for each in content.heard if isinstance(each.what, Media)],
        "tools": [_tool_event(each, each.what) for each in content.heard if isinstance(each.what, ToolEvent)],
    }


def media_object(heard: SegmentEvent, media: Media) -> Object:
    """A part with octets, or an address."""
    return {
        "at": text.utc(heard.at),
        "exchange": heard.exchange,
        "seq": heard.seq,
        "path": media.path,
        "artifact_id": media.artifact_id or None,
        "media_type": media.media_type,
        "filename": media.filename,
        "sha256": media.sha256 or None,
        "size": len(media.data) if not media.url else None,
        "url": media.url or None,
        "encoding": media.encoding,
    }


def _tool_event(heard: SegmentEvent, tool: ToolEvent) -> Object:
    kind = "response" if tool.response else "call"
    return {"at": text.utc(heard.at), "kind": kind, "name": tool.name, "id": tool.id}


def turn_object(turn: Turn, contents: dict[int, SegmentContent]) -> Object:
    """The measures of 8.3; null where a thing did not happen."""
    characters = sum(contents[each.id].output_characters for each in turn.agents if each.id in contents)
    return {
        "turn": turn.number,
        "began": text.utc(turn.segments[0].began),
        "segments": [each.id for each in turn.segments],
        "time_to_first_event_ns": turn.first_event,
        "time_to_first_output_ns": turn.first_output,
        "response_latency_ns": turn.response,
        "duration_ns": turn.duration,
        "longest_gap_ns": turn.longest_gap,
        "idle_share": turn.idle_share,
        "output_characters": characters,
        "output_characters_per_second": characters / turn.output_time * 1e9 if turn.output_time else None,
        "human_wait_ns": turn.human_wait,
        "close_latency_ns": turn.close,
    }


def interruption_object(broken: Interruption) -> Object:
    """The measures of 8.4."""
    return {
        "number": broken.id,
        "kind": broken.kind,
        "at": text.utc(broken.at),
        "frame": {"exchange": broken.exchange, "seq": broken.seq},
        "segment": broken.segment,
        "outcome": broken.outcome or None,
        "ended": text.utc(broken.ended) if broken.ended else None,
        "latency_ns": broken.latency,
        "reaction_time_ns": broken.reaction_time,
        "residual_frames": broken.residual_frames,
        "residual_bytes": broken.residual_bytes,
        "wasted_bytes": broken.wasted,
    }


def handoff_object(handoff: Handoff, carried: float | None = None) -> Object:
    """The measures of 8.5; what was carried over where it was worked out."""
    return {
        "number": handoff.id,
        "kind": handoff.kind,
        "evidence": handoff.evidence,
        "at": text.utc(handoff.at),
        "frame": {"exchange": handoff.exchange, "seq": handoff.seq},
        "segment": handoff.segment,
        "to_agent": handoff.to_agent,
        "to_task": handoff.to_task or None,
        "to_exchange": handoff.to_exchange,
        "ended": text.utc(handoff.ended) if handoff.ended else None,
        "latency_ns": handoff.latency,
        "briefing_bytes": handoff.briefing,
        "context_carried": carried,
    }


def tool_object(tool: Tool) -> Object:
    """The measures of 8.7."""
    return {
        "name": tool.name,
        "id": tool.id,
        "called": text.utc(tool.called) if tool.called else None,
        "answers": len(tool.answers),
        "latency_ns": tool.latency,
        "period_ns": tool.period,
        "drift_ns": tool.drift,
        "completed": tool.completed,
    }


def summary_object(session: int, spans: MeasureValues) -> Object:
    """p50, p95 and the greatest of each measure, ns."""
    return {"what": "summary", "session": session, **{name: figures.as_object() for name, figures in spans.figures()}}
