"""Segments, turns, interruptions, hand-offs and tools as JSON with stable names: times in UTC,
durations in ns."""

from collections.abc import Iterator

from a2a_inspect.commands.segments.conversation_tree import (
    ConversationTree,
    SessionConversations,
)
from a2a_inspect.commands.segments.summary import MeasureValues
from a2a_proxy.model.values import Handoff, Interruption, Segment
from a2a_proxy.present import text
from a2a_proxy.protocol.segments.content import Media, ToolEvent
from a2a_proxy.protocol.segments.measures import Turn
from a2a_proxy.recording.read.conversations import SegmentContent, SegmentEvent

JsonObject = dict[str, object]


def conversation_objects(
    session: int, conversation: ConversationTree, gathered: SessionConversations
) -> Iterator[JsonObject]:
    """Yield the objects of one conversation, each turn after its segments."""
    about = {
        "session": session,
        "agent": conversation.agent,
        "task_id": conversation.task_id,
        "context_id": conversation.context_id,
    }
    for turn in conversation.turns:
        for segment in turn.segments:
            yield {
                "what": "segment",
                **about,
                **segment_object(segment, gathered.contents.get(segment.id, SegmentContent())),
            }
        yield {"what": "turn", **about, **turn_object(turn, gathered.contents)}
    for broken in conversation.interruptions:
        yield {"what": "interruption", **about, **interruption_object(broken)}
    for handoff in conversation.handoffs:
        yield {
            "what": "handoff",
            **about,
            **handoff_object(handoff, gathered.carried_shares.get(handoff.id)),
        }
    for tool in conversation.tools:
        # A tool call with its measures (manual/protocol.md "Tools and media").
        yield {
            "what": "tool",
            **about,
            "name": tool.name,
            "id": tool.id,
            "called": text.format_utc(tool.called_at) if tool.called_at else None,
            "answers": len(tool.answers),
            "latency_ns": tool.latency,
            "period_ns": tool.period,
            "drift_ns": tool.drift,
            "completed": tool.completed,
        }


def segment_object(segment: Segment, content: SegmentContent) -> JsonObject:
    """Return one speaker's segment."""
    # A part with bytes or a URL.
    return {
        "number": segment.id,
        "speaker": segment.speaker,
        "author": segment.author or None,
        "turn": segment.turn,
        "began": text.format_utc(segment.began),
        "start": text.format_utc(segment.start),
        "end": text.format_utc(segment.end),
        "ended": text.format_utc(segment.ended) if segment.ended else None,
        "reason": segment.reason or None,
        "duration_ns": segment.end - segment.start,
        "frames": segment.frames,
        "bytes": segment.bytes,
        "outputs": segment.outputs,
        "longest_gap_ns": segment.gap,
        "first_frame": {"exchange": segment.exchange, "seq": segment.seq},
        "last_frame": {"exchange": segment.last_exchange, "seq": segment.last_seq},
        "generations": [segment.generation_first, segment.generation_last]
        if segment.generation_first
        else None,
        "text": content.text,
        "characters": content.characters,
        "media": [
            {
                "at": text.format_utc(each.at),
                "exchange": each.exchange,
                "seq": each.seq,
                "path": each.what.path,
                "artifact_id": each.what.artifact_id or None,
                "media_type": each.what.media_type,
                "filename": each.what.filename,
                "sha256": each.what.sha256 or None,
                "size": len(each.what.data) if not each.what.url else None,
                "url": each.what.url or None,
                "encoding": each.what.encoding,
            }
            for each in content.heard
            if isinstance(each.what, Media)
        ],
        "tools": [
            _tool_event_object(each, each.what)
            for each in content.heard
            if isinstance(each.what, ToolEvent)
        ],
    }


def _tool_event_object(event: SegmentEvent, tool: ToolEvent) -> JsonObject:
    kind = "response" if tool.response else "call"
    return {"at": text.format_utc(event.at), "kind": kind, "name": tool.name, "id": tool.id}


def turn_object(turn: Turn, contents: dict[int, SegmentContent]) -> JsonObject:
    """Return a turn with its measures (manual/protocol.md "Measures"); null for events that did not
    happen."""
    characters = sum(
        contents[each.id].output_characters for each in turn.agents if each.id in contents
    )
    return {
        "turn": turn.number,
        "began": text.format_utc(turn.segments[0].began),
        "segments": [each.id for each in turn.segments],
        "time_to_first_event_ns": turn.first_event,
        "time_to_first_output_ns": turn.first_output,
        "response_latency_ns": turn.response,
        "duration_ns": turn.duration,
        "longest_gap_ns": turn.longest_gap,
        "idle_share": turn.idle_share,
        "output_characters": characters,
        "output_characters_per_second": characters / turn.output_time * 1e9
        if turn.output_time
        else None,
        "human_wait_ns": turn.human_wait,
        "close_latency_ns": turn.close,
    }


def interruption_object(interruption: Interruption) -> JsonObject:
    """Return an interruption with its measures (manual/protocol.md "Interruptions")."""
    return {
        "number": interruption.id,
        "kind": interruption.kind,
        "at": text.format_utc(interruption.at),
        "frame": {"exchange": interruption.exchange, "seq": interruption.seq},
        "segment": interruption.segment,
        "outcome": interruption.outcome or None,
        "ended": text.format_utc(interruption.ended) if interruption.ended else None,
        "latency_ns": interruption.latency,
        "reaction_time_ns": interruption.reaction_time,
        "residual_frames": interruption.residual_frames,
        "residual_bytes": interruption.residual_bytes,
        "wasted_bytes": interruption.wasted,
    }


def handoff_object(handoff: Handoff, carried: float | None = None) -> JsonObject:
    """Return a hand-off with its measures (manual/protocol.md "Hand-offs") and the carried-over
    share if computed."""
    return {
        "number": handoff.id,
        "kind": handoff.kind,
        "evidence": handoff.evidence,
        "at": text.format_utc(handoff.at),
        "frame": {"exchange": handoff.exchange, "seq": handoff.seq},
        "segment": handoff.segment,
        "to_agent": handoff.to_agent,
        "to_task": handoff.to_task or None,
        "to_exchange": handoff.to_exchange,
        "ended": text.format_utc(handoff.ended) if handoff.ended else None,
        "latency_ns": handoff.latency,
        "briefing_bytes": handoff.briefing,
        "context_carried": carried,
    }


def summary_object(session: int, spans: MeasureValues) -> JsonObject:
    """Return p50, p95 and the maximum of each measure, ns."""
    return {
        "what": "summary",
        "session": session,
        **{name: figures.as_object() for name, figures in spans.summarise_measures()},
    }
