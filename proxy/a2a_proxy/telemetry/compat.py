"""Attribute names of other tools, added to the span's own: `--compat` (offline), `--otlp-compat` (live). No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from a2a_proxy.telemetry.message_content import MessageContent
from a2a_proxy.telemetry.span_options import Compat
from a2a_proxy.telemetry.values import Attributes, Value

_KONG_NAMES = {
    "kong.a2a.operation": "a2a.method.name",
    "kong.a2a.protocol.version": "a2a.protocol.version",
    "kong.a2a.task.id": "a2a.task.id",
    "kong.a2a.task.state": "a2a.task.state",
    "kong.a2a.context.id": "gen_ai.conversation.id",
    "kong.a2a.error": "error.type",
    "kong.a2a.streaming": "a2a_proxy.stream",
    "kong.a2a.ttfb_latency": "a2a_proxy.stream.first_event_ms",
}
_SSE_BINDINGS = ("jsonrpc", "http+json")
"""Bindings whose streams are SSE."""


def compat_attributes(attributes: Mapping[str, Value], content: MessageContent, compat: Iterable[Compat]) -> Attributes:
    """Return the attributes of a call's span under the names of other tools, without empty ones."""
    made: dict[str, Value | None] = {}
    for each in compat:
        if each == "kong":
            made |= {name: attributes.get(known) for name, known in _KONG_NAMES.items()}
            if attributes.get("a2a_proxy.stream") and attributes.get("a2a_proxy.binding") in _SSE_BINDINGS:
                made["kong.a2a.sse_events_count"] = attributes.get("a2a_proxy.stream.events")
        elif each == "openinference":
            made |= {"openinference.span.kind": "AGENT", "session.id": attributes.get("gen_ai.conversation.id")}
            made |= {"input.value": content.input.text, "output.value": content.output.text}
        else:
            made |= {"langfuse.observation.type": "agent", "session.id": attributes.get("gen_ai.conversation.id")}
            made |= {"langfuse.observation.input": content.input.text}
            made |= {"langfuse.observation.output": content.output.text}
    return {name: value for name, value in made.items() if value not in (None, "")}
