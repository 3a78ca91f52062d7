"""Extensions with a few members: latency, secure passport, timestamp and traceability."""

from datetime import datetime, timedelta
from typing import Any

from a2a_proxy.protocol.extensions.extension import Extension, ExtensionPayload, Place
from a2a_proxy.protocol.extensions.members import (
    count,
    list_member,
    list_names,
    malformed,
    object_member,
    text_member,
)

_LATENCIES = (
    "minLatency",
    "p50Latency",
    "p75Latency",
    "p90Latency",
    "p95Latency",
    "p99Latency",
    "maxLatency",
)
_SAMPLES = (
    "https://github.com/a2aproject/a2a-samples/",
    "https://github.com/a2aproject/a2a-samples/samples/",
)
"""Both beginnings are in use."""


def _describe_latency(payload: ExtensionPayload) -> str | None:
    if payload.place is Place.CARD:
        published = object_member(payload.value, "skillLatency")
        named = {
            name.removesuffix("Latency"): published[name]
            for name in _LATENCIES
            if name in published
        }
        skills = [name for name in published if name not in _LATENCIES]
        return list_names(
            [f"{name} {_milliseconds(value)}" for name, value in named.items()] or skills
        )
    if payload.key != "latency":
        return None
    tool = text_member(payload.metadata, "toolName")
    return f"{_milliseconds(payload.value)} expected" + (f" for {tool}" if tool else "")


def _milliseconds(value: Any) -> str:
    is_time = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value} ms" if is_time and value >= 0 else malformed("no time in ms")


def _describe_passport(payload: ExtensionPayload) -> str | None:
    """Describe who calls, and what the caller shares; the signature is never shown."""
    if payload.place is Place.CARD:
        keys = [
            each
            for each in list_member(payload.value, "supportedStateKeys")
            if isinstance(each, str)
        ]
        return f"reads {list_names(keys)}" if keys else ""
    if not isinstance(payload.value, dict):
        return malformed("it is not an object")
    agent, state = text_member(payload.value, "agentId"), object_member(payload.value, "state")
    words = [
        f"of {agent}" if agent else malformed("no agentId"),
        f"shares {list_names(list(state))}" if state else "shares nothing",
        "signed" if text_member(payload.value, "signature") else "not signed",
    ]
    return ", ".join(words)


def _describe_timestamp(payload: ExtensionPayload) -> str | None:
    if payload.place is Place.CARD:
        return ""
    if isinstance(payload.value, dict) and "steps" in payload.value:
        return None  # the specification of the traceability extension names the key of this one
    if not isinstance(payload.value, str):
        return malformed("it is not a text")
    try:
        at = datetime.fromisoformat(payload.value)
    except ValueError:
        return malformed(f"{payload.value[:40]} is not a time")
    return payload.value if at.utcoffset() == timedelta(0) else f"{payload.value}, not in UTC"


def _describe_trace(payload: ExtensionPayload) -> str | None:
    if payload.place is Place.CARD:
        return ""
    if payload.place is Place.DATA:
        return _describe_steps(payload.value) if payload.key == "steps" else None
    if not isinstance(payload.value, dict):
        return malformed("it is not an object")
    return _describe_steps(payload.value.get("steps"))


def _describe_steps(steps: Any) -> str:
    if not isinstance(steps, list):
        return malformed("steps is not an array")
    names = [name for each in steps if (name := _step_name(each))]
    return count(len(steps), "step") + (f": {list_names(names)}" if names else "")


def _step_name(step: Any) -> str:
    action = object_member(step, "step_action") or object_member(step, "stepAction")
    tool = object_member(action, "tool_invocation") or object_member(action, "toolInvocation")
    agent = object_member(action, "agent_invocation") or object_member(action, "agentInvocation")
    return text_member(tool, "tool_name", "toolName") or text_member(
        agent, "agent_name", "agentName"
    )


LATENCY = Extension(
    name="latency",
    uris=("https://github.com/twilio-labs/a2a-latency-extension",),
    members=("latency",),
    needs_uri=True,
    summarise=_describe_latency,
)
SECURE_PASSPORT = Extension(
    name="secure passport",
    uris=("https://a2aprotocol.ai/ext/secure-passport",),
    summarise=_describe_passport,
)
TIMESTAMP = Extension(
    name="timestamp",
    uris=tuple(f"{each}extensions/timestamp/" for each in _SAMPLES),
    summarise=_describe_timestamp,
)
TRACEABILITY = Extension(
    name="traceability",
    uris=tuple(f"{each}extensions/traceability/" for each in _SAMPLES),
    metadata=tuple(uri.removeprefix("https://") for uri in TIMESTAMP.uris),
    members=("steps",),
    needs_uri=True,
    summarise=_describe_trace,
)
"""Its specification names the metadata key of the timestamp extension, which leaves such a value to
this one."""
