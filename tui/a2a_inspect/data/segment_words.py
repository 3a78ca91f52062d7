"""Segments, interruptions and hand-offs in words."""

from a2a_inspect.data.agent_names import AgentNames
from a2a_proxy.model.values import Handoff, Interruption
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible


def signed_duration(value: int) -> str:
    """Return a duration that may be negative: the agent spoke before the client had finished."""
    return f"-{text.format_duration(-value)}" if value < 0 else text.format_duration(value)


def measure_words(name: str, value: int | None) -> str:
    """Return a measure with its name, or an empty text if it is unknown."""
    return f"{name} {signed_duration(value)}" if value is not None else ""


def interruption_words(interruption: Interruption) -> str:
    """Return one line about an interruption."""
    parts = [
        (
            f"interrupted by {_INTERRUPTION_WORDS[interruption.kind]} "
            f"#{interruption.exchange}.{interruption.seq}"
        ),
        interruption.outcome or "(open)",
        measure_words("latency", interruption.latency),
        measure_words("reaction", interruption.reaction_time),
    ]
    if interruption.residual_frames:
        residue = (
            f"{text.format_count(interruption.residual_frames, 'frame')} after it, "
            f"{text.format_size(interruption.residual_bytes)}"
        )
        parts.append(f"{residue}, {text.format_size(interruption.wasted)} of content wasted")
    return "  ".join(each for each in parts if each)


_INTERRUPTION_WORDS = {
    "message": "a message",
    "cancel": "a cancel",
    "event": "a media event",
    "context": "a new task in the context (weak)",
}


def handoff_words(handoff: Handoff, names: AgentNames) -> str:
    """Return one line about a hand-off, without the share of carried-over content."""
    to = names.find(handoff.to_agent) + (f" task {handoff.to_task}" if handoff.to_task else "")
    evidence = f"{handoff.kind} by {handoff.evidence}"
    parts = [
        f"hand-off to {make_visible(to)}  {evidence}  #{handoff.exchange}.{handoff.seq}",
        measure_words("latency", handoff.latency) or ("no output" if handoff.ended else "(open)"),
        f"briefing {text.format_size(handoff.briefing)}" if handoff.briefing else "",
    ]
    return "  ".join(each for each in parts if each)
