"""Conversations with a stdio agent (manual/protocol.md "Stdio"), valid except for the property an
example shows.

`pipe_script(pipe_call("GetTask", {"id": "t1"}), pipe_response(task()))` is a complete one: the card
is fetched first, and at the end the client closes the agent's stdin and the agent exits.
"""

from typing import Any

import msgspec

from a2a_proxy.model.wire import ChunkKind, Direction, ExitFacts
from a2a_proxy.rules.examples.objects import TASK_PARAMS, Json, task
from a2a_proxy.rules.examples.script import MS, STEP, PeerStep, Script, ScriptConnection

COMMAND = "npx run my-agent@0.3.0"
UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
HEADER_BLOCK = "Content-Length: {size}\r\nContent-Type: application/json\r\n"
VERSIONED_HEADER_BLOCK = f"{HEADER_BLOCK}A2A-Version: 1.0\r\n\r\n"
"""The header block of a client's message; `{size}` is replaced by the size of the content."""
PLAIN_HEADER_BLOCK = f"{HEADER_BLOCK}\r\n"
"""The header block of an agent's message."""


class PipeAction(msgspec.Struct, frozen=True):
    """One action of a peer, or a pause of `seconds`."""

    direction: Direction = UP
    data: bytes = b""
    text: str = ""
    kind: ChunkKind = ChunkKind.DATA
    seconds: float = 0


def pipe_call(
    method: str,
    params: Any = None,
    *,
    id: Any = 1,
    head: str = VERSIONED_HEADER_BLOCK,
    envelope: Json | None = None,
) -> PipeAction:
    """Return a call; `envelope` changes its members, None removes one."""
    value = {"jsonrpc": "2.0", "id": id, "method": method, "params": params} | (envelope or {})
    return pipe_message(UP, {name: item for name, item in value.items() if item is not None}, head)


def pipe_response(
    result: Any = None, *, id: Any = 1, error: Json | None = None, head: str = PLAIN_HEADER_BLOCK
) -> PipeAction:
    """Return a response."""
    outcome: Json = {"result": result} if error is None else {"error": error}
    return pipe_message(DOWN, {"jsonrpc": "2.0", "id": id} | outcome, head)


def pipe_message(direction: Direction, value: Any, head: str = PLAIN_HEADER_BLOCK) -> PipeAction:
    """Return a message with any content. Its header block is shown only if it is not the usual
    one."""
    content = msgspec.json.encode(value)
    block = head.format(size=len(content)).encode()
    text, usual = (
        content.decode(),
        PLAIN_HEADER_BLOCK if direction is DOWN else VERSIONED_HEADER_BLOCK,
    )
    return PipeAction(
        direction, block + content, text if head == usual else f"{visible_line_ends(block)}{text}"
    )


def pipe_bytes(direction: Direction, data: str | bytes) -> PipeAction:
    """Return arbitrary other bytes on the pipe."""
    raw = data.encode() if isinstance(data, str) else data
    return PipeAction(direction, raw, visible_line_ends(raw))


def visible_line_ends(raw: bytes) -> str:
    """Return the bytes as text with line ends as symbols."""
    return raw.decode("utf-8", "replace").replace("\r\n", "⏎").replace("\n", "␊")


def pipe_pause(seconds: float) -> PipeAction:
    """Return a pause."""
    return PipeAction(seconds=seconds)


def close_input() -> PipeAction:
    """Return the action of the client closing the agent's stdin."""
    return PipeAction(UP, b"", "closes stdin", ChunkKind.EOF)


def close_output() -> PipeAction:
    """Return the action of the agent closing its stdout."""
    return PipeAction(DOWN, b"", "closes stdout", ChunkKind.EOF)


def exit_agent(code: int = 0) -> PipeAction:
    """Return the exit of the agent's process."""
    facts = ExitFacts(code)
    return PipeAction(
        DOWN, msgspec.json.encode(facts), f"the agent {facts.description}", ChunkKind.EXITED
    )


def pipe_script(*acts: PipeAction) -> Script:
    """Return a conversation; if it does not end with an exit, a clean end is added."""

    def make() -> ScriptConnection:
        last = (
            ()
            if any(act.kind is ChunkKind.EXITED for act in acts)
            else (close_input(), close_output(), exit_agent())
        )
        steps, at = [], STEP
        for act in (*acts, *last):
            if act.seconds:
                at += int(act.seconds * 1000) * MS
                continue
            steps.append(PeerStep(at, act.direction, act.data, act.kind, act.text))
            at += STEP
        return ScriptConnection(tuple(steps), at, COMMAND, transport="stdio")

    return Script.of(make)


CLEAN_PIPE = pipe_script(pipe_call("GetTask", TASK_PARAMS), pipe_response(task()))
"""A call and its response, without a fault."""
