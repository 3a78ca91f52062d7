"""Compare two accounts of the same calls: what an SDK returned to its caller (a transcript), and
what the proxy recorded.

An exchange belongs to a stream of a transcript if the recorded events, read by
`a2a_proxy.protocol.event` and put in the words of the transcripts (`tests/peers/clients/kit.py`),
are the next events of that stream, in order.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import grpc

from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.event import normalise_event
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.recording.read.reader import Recording
from support_peers import Entry, Transcript

Event = dict[str, Any]
CODES = {code.value[0]: code.name for code in grpc.StatusCode}
SECRET = {"token", "credentials"}
"""The recording has labels in place of these."""
CUT_SHORT = "the response broke off"
CUT_ERRORS = {"A2AClientHTTPError", "TypeError"}
"""Errors that SDKs raise when a response ends early."""
CODE_ONLY = {"A2AClientHTTPError"}
"""Errors that SDKs raise with the HTTP status instead of the agent's text."""


@dataclass(frozen=True)
class Told:
    """One message or error of an agent in an exchange."""

    exchange: Exchange
    frame: Frame
    event: Event


@dataclass
class Line:
    """One stream of a transcript, and its part that the recording has covered so far."""

    binding: str
    scenario: str
    stream: str
    entries: list[Entry]
    ignored: frozenset[str] = frozenset()
    """Members that the SDK of this client changes."""
    position: int = 0
    told: list[tuple[Entry, Told]] = field(default_factory=list)
    swallowed: list[Told] = field(default_factory=list)
    """Messages and errors that arrived after the client had stopped reading."""

    @property
    def untold(self) -> list[Event]:
        """Return the entries that the recording does not cover. The end of a stream and its
        cancellation are not sent as messages."""
        return [
            entry.event for entry in self.entries[self.position :] if entry.event["kind"] != "left"
        ]

    @property
    def next_at(self) -> int:
        """Return when the caller received the next entry, ns."""
        return self.entries[self.position].at if self.position < len(self.entries) else 0

    def gives_up(self, event: Event) -> bool:
        """Return whether the caller received nothing more of this stream, because it left or its
        SDK cannot read U+2028."""
        return event["kind"] == "left" or (
            event["kind"] == "error" and "Unterminated string" in event["message"]
        )

    def take(self, said: list[Told]) -> bool:
        """Take an exchange if its events are the next ones of this stream."""
        rest, taken = self.entries[self.position :], 0
        for one in said:
            if taken == len(rest):
                return False
            if taken and self.gives_up(rest[taken].event):
                break
            if not same(rest[taken].event, one, self.ignored):
                return False
            taken += 1
        self.told += zip(rest[:taken], said, strict=False)
        self.swallowed += said[taken:]
        self.position += taken + (len(said) > taken)
        return True


def lines(
    binding: str, seen: list[Transcript], ignored: frozenset[str] = frozenset()
) -> list[Line]:
    """Return the streams of the transcripts of one client. Webhooks are excluded, because they are
    not called through the proxy."""
    found = []
    for one in seen:
        for name in sorted({entry.stream for entry in one.entries} - {"webhook"}):
            entries = [
                entry for entry in one.entries if entry.stream == name and _was_sent(entry.event)
            ]
            found.append(Line(binding, one.scenario, name, entries, ignored))
    return found


def told(recording: Recording) -> list[list[Told]]:
    """Return the messages and errors of the agents, by exchange."""
    found = []
    for row in recording.read_exchanges():
        frames = [frame_row.frame for frame_row in recording.read_frames(row.key)]
        found.append(
            [
                Told(row.exchange, frame, event)
                for frame in frames
                for event in _events(row.exchange, frame)
            ]
        )
    return found


def match(exchanges: list[list[Told]], account: list[Line]) -> list[list[Told]]:
    """Assign each exchange to the stream whose next events it has; return the exchanges without a
    stream.

    If several streams fit (all clients fetch one card), the exchange goes to the stream whose
    client received its next entry first. An exchange that fits none is tried again after the
    others: the client that called first may have been the last to write down its answer.
    """
    strangers = []
    for said in exchanges:
        fit = [line for line in account if said and _fits(line, said)]
        if said and not any(line.take(said) for line in sorted(fit, key=lambda line: line.next_at)):
            strangers.append(said)
    return match(strangers, account) if len(strangers) < len(exchanges) else strangers


def _fits(line: Line, said: list[Told]) -> bool:
    """Return whether the client of a stream can have made the call. A client that gets its card
    over its binding has fetched the public card before, once; both may have the same name."""
    binding = said[0].exchange.binding
    has_card = any(one.exchange.binding is Binding.CARD for _, one in line.told)
    if binding is Binding.CARD:
        return not has_card
    if said[0].event["kind"] == "card" and not has_card:
        return False
    return binding in (line.binding, Binding.OTHER)


def _was_sent(event: Event) -> bool:
    """Return whether an agent sent it: false for the end of a stream, and for calls that an SDK
    refused because 0.3 lacks them."""
    return event["kind"] != "end" and "tasks/list" not in event.get("message", "")


def same(event: Event, one: Told, ignored: frozenset[str] = frozenset()) -> bool:
    """Return whether the caller received what was recorded, except for secrets and the members that
    its SDK changes."""
    match event["kind"]:
        case "http":
            return event["status"] == one.exchange.status and _same_body(
                event["body"], one.frame.payload.decode()
            )
        case "error":
            return one.event["kind"] == "error" and _same_error(event, one.event)
        case "card":
            shown = event.get("card", event)
            return covers(
                {"kind": "card", "name": shown["name"], "description": shown["description"]},
                one.event,
            )
        case "pushes" if "names" in event:
            return bool(one.event["kind"] == "pushes") and event["names"] == [
                _resource(each) for each in one.event["configs"]
            ]
        case "push" if "pushNotificationConfig" in event:
            return covers(_old_push(event), one.event)
        case _:
            return covers(event, one.event, SECRET | ignored)


def covers(wanted: Any, given: Any, ignored: frozenset[str] | set[str] = frozenset(SECRET)) -> bool:
    """Return whether `given` contains everything in `wanted`. null, empty and absent are equal, and
    so are 0 and "0"."""
    if isinstance(wanted, dict):
        if not isinstance(given, dict):
            return False
        return all(
            _covers(name, wanted[name], given.get(name), ignored)
            for name in wanted.keys() - ignored
        )
    if isinstance(wanted, list):
        return len(wanted) == len(given or []) and all(
            covers(one, other, ignored) for one, other in zip(wanted, given or [], strict=True)
        )
    return (wanted or None) == (given or None) or str(wanted) == str(given)


def _covers(name: str, wanted: Any, given: Any, ignored: frozenset[str] | set[str]) -> bool:
    """As `covers`. The 0.3 SDKs put base64 into the bytes of the protobuf form, and the Python SDK
    decodes it again."""
    if name == "raw" and isinstance(given, str) and wanted != given:
        return bool(wanted == base64.b64decode(given).decode("ascii", "replace"))
    return covers(wanted, given, ignored)


def _same_error(event: Event, recorded: Event) -> bool:
    """Return whether two errors are the same. SDKs add text of their own around the recorded
    message, or keep only the code."""
    message = recorded["message"]
    if message == CUT_SHORT:
        return event["type"] in CUT_ERRORS
    if message and event["type"] not in CODE_ONLY:
        return message in str(event["message"])
    return str(event["code"]) == str(recorded["code"])


def _same_body(shown: str, recorded: str) -> bool:
    try:
        return covers(json.loads(shown), json.loads(recorded))
    except ValueError:
        return shown == recorded


def _resource(config: Event) -> str:
    """Return the name of a push configuration in the 0.3 protobuf form."""
    return f"tasks/{config['task']}/pushNotificationConfigs/{config['id']}"


def _old_push(event: Event) -> Event:
    config = event["pushNotificationConfig"]
    scheme = config["authentication"]["schemes"][0]
    return {
        "kind": "push",
        "task": event.get("taskId", event.get("id")),
        "url": config["url"],
        "scheme": scheme,
    }


def _events(exchange: Exchange, frame: Frame) -> Iterator[Event]:
    if frame.direction is Direction.TO_AGENT:
        return
    if frame.kind is FrameKind.END and exchange.binding is Binding.GRPC and frame.error_code:
        message = unquote(dict(json.loads(frame.payload)).get("grpc-message", ""))
        yield {"kind": "error", "code": CODES[frame.error_code], "message": message}
    elif frame.kind is FrameKind.ERROR:
        yield _error(frame)
    elif frame.kind is FrameKind.CUT:
        yield {"kind": "error", "code": None, "message": CUT_SHORT}
    elif frame.kind in (FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.OTHER):
        yield _shown(
            normalise_event(
                frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
            ),
            exchange,
        )


def _error(frame: Frame) -> Event:
    body = (
        json.loads(frame.payload) if frame.schema == JSON else {"message": frame.payload.decode()}
    )
    inner = body.get("error", body)
    error = inner if isinstance(inner, dict) else {"message": str(inner)}
    message = error.get("message", error.get("detail", ""))
    return {"kind": "error", "code": error.get("code", frame.error_code), "message": message}


def _shown(value: Event, exchange: Exchange) -> Event:
    """Return a normalised event in the vocabulary of the transcripts."""
    match value:
        case {"task": dict(task)}:
            return _task(task)
        case {"message": dict(message)}:
            return _message(message)
        case {"statusUpdate": dict(update)}:
            progress = update.get("status", {}).get("progress")
            return {"kind": "status", **_ids(update), **_status(update), "progress": progress}
        case {"artifactUpdate": dict(update)}:
            flags = {"append": update.get("append", False), "last": update.get("lastChunk", False)}
            return {"kind": "artifact", **_ids(update), **_artifact(update["artifact"]), **flags}
        case {"tasks": list(tasks)}:
            return {"kind": "tasks", "tasks": [_task(task) for task in tasks]}
        case {"configs": list(configs)}:
            return {"kind": "pushes", "configs": [_push(config) for config in configs]}
    if exchange.operation.endswith("AgentCard"):
        return {"kind": "card", "name": value.get("name"), "description": value.get("description")}
    if exchange.operation.endswith("TaskPushNotificationConfig") and value.get("url"):
        return _push(value)
    return {"kind": "ok"}


def _ids(value: Event) -> Event:
    return {
        "task": value.get("taskId"),
        "context": value.get("contextId"),
        "final": value.get("final", False),
    }


def _status(value: Event) -> Event:
    status = value.get("status", {})
    text = "".join(part.get("text", "") for part in status.get("message", {}).get("parts", []))
    return {"state": _word(status.get("state", "UNSPECIFIED")), "text": text}


def _word(state: str) -> str:
    return state.removeprefix("TASK_STATE_").removeprefix("ROLE_").lower().replace("_", "-")


def _task(value: Event) -> Event:
    """Return a task. A complete task stands for the chunk flags that 0.1 omits from its
    artifacts."""
    artifacts = [
        {**_artifact(one), "append": False, "last": True} for one in value.get("artifacts", [])
    ]
    ids = {"kind": "task", "task": value.get("id"), "context": value.get("contextId")}
    return {
        **ids,
        **_status(value),
        "artifacts": artifacts,
        "history": len(value.get("history", [])),
    }


def _message(value: Event) -> Event:
    ids = {
        "task": value.get("taskId"),
        "context": value.get("contextId"),
        "message": value.get("messageId"),
    }
    parts = [_part(part) for part in value.get("parts", [])]
    return {"kind": "message", **ids, "role": _word(value.get("role", "")), "parts": parts}


def _artifact(value: Event) -> Event:
    parts = [_part(part) for part in value.get("parts", [])]
    return {"artifact": value["artifactId"], "name": value.get("name"), "parts": parts}


def _part(value: Event) -> Event:
    text = value.get("text")
    if text is not None and len(text) > 200:
        return {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return {**value, "media": value.get("mediaType"), "name": value.get("filename")}


def _push(value: Event) -> Event:
    scheme = value.get("authentication", {}).get("scheme")
    ids = {"task": value.get("taskId"), "id": value.get("id"), "url": value.get("url")}
    return {"kind": "push", **ids, "scheme": scheme}
