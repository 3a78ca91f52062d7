"""Recordings for the tests of the screen, and the text on a screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from textual.app import App

from a2a_proxy.model.values import (
    Binding,
    Changes,
    Connection,
    Dialect,
    EventKind,
    Exchange,
    Frame,
    FrameKind,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, facts

MS = 1_000_000
TASK = "7604af5e-efd3-449c-94db-8950136d0e66"


def writer(path: Path, number: int = 1) -> Writer:
    """Return a writer of session `number`."""
    return Writer(path, facts(number, listens=("127.0.0.1:9000",), upstreams=("agent:8000",)))


def exchange(number: int, **more: Any) -> Exchange:
    """Return a streaming call that ended without error after 900 ms."""
    at = STARTED + number * 1000 * MS
    values: dict[str, Any] = {
        "id": number,
        "connection": 1,
        "stream": number,
        "binding": Binding.JSONRPC,
        "started": at,
        "dialect": Dialect.V1_0,
        "operation": "SendStreamingMessage",
        "method": "SendStreamingMessage",
        "target": "/rpc",
        "http_version": "1.1",
        "streaming": True,
        "request_headers": ((b"Content-Type", b"application/json"), (b"X-Odd", b"\x1b[31mred")),
        "response_headers": ((b"Content-Type", b"text/event-stream"),),
        "request_ended": at,
        "response_started": at + MS,
        "first_event": at + 2 * MS,
        "last_event": at + 800 * MS,
        "closed": at + 900 * MS,
        "status": 200,
        "how": "complete",
        "task_id": TASK,
        "states": ("submitted", "working", "completed"),
        "requests": 1,
        "events": 2,
        "agent": "agent:8000",
    }
    return Exchange(**{**values, **more})


def live(number: int, **more: Any) -> Exchange:
    """Return the same call, still open."""
    return exchange(number, closed=0, how="", states=("working",), **more)


def request(number: int, text: str = "Plan a day") -> Frame:
    """Return frame 0 of an exchange: the client's message."""
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendStreamingMessage",
        "params": {"message": message},
    }
    return frame(
        number, 0, json.dumps(call).encode(), kind=FrameKind.REQUEST, direction=Direction.TO_AGENT
    )


def status(number: int, seq: int, text: str) -> Frame:
    """Return an event of an exchange: state working, with a message of the agent."""
    said = {"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    update = {
        "taskId": TASK,
        "contextId": "c",
        "status": {"state": "TASK_STATE_WORKING", "message": said},
    }
    payload = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": update}}).encode()
    return frame(number, seq, payload, event=EventKind.STATUS, state=2, task_id=TASK)


def frame(number: int, seq: int, payload: bytes, **more: Any) -> Frame:
    """Return any frame of an exchange, 100 ms after the previous one."""
    at = STARTED + number * 1000 * MS + seq * 100 * MS
    values: dict[str, Any] = {
        "connection": 1,
        "exchange": number,
        "seq": seq,
        "direction": Direction.TO_CLIENT,
        "kind": FrameKind.EVENT,
        "began": at,
        "at": at,
        "start": 0,
        "end": len(payload),
        "payload": payload,
        "size": len(payload),
        "schema": "json",
    }
    return Frame(**{**values, **more})


def changes(*exchanges: Exchange) -> Changes:
    """Return snapshots of these, on one connection."""
    connection = Connection(
        1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED, kind="http/1.1"
    )
    return Changes([connection], list(exchanges), [])


def sample(path: Path, count: int = 3) -> Path:
    """Write a finished recording of `count` exchanges, each a request and two events; the second
    ended with an error."""
    made = writer(path)
    for number in range(1, count + 1):
        wrong = (
            {"error": "TASK_NOT_FOUND -32001: no such task", "states": ()} if number == 2 else {}
        )
        frames = [
            request(number, f"Question {number}"),
            status(number, 1, "Thinking"),
            status(number, 2, "Nearly"),
        ]
        made.write(frames, changes=changes(exchange(number, **wrong)))
    made.finish(STARTED + 10_000 * MS)
    return path


def screen_text(app: App[Any]) -> str:
    """Return every line of the terminal."""
    return "\n".join(screen_lines(app))


def screen_lines(app: App[Any]) -> list[str]:
    """Return the lines of the terminal one by one."""
    strips = (
        app.screen._compositor.render_strips()
    )  # Textual has no public method that returns the shown cells
    return [strip.text for strip in strips][: app.size.height]
