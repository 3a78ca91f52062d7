"""Sessions as lists of chunks, from real captures and from scripts, and the output of an observer
for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.model.saved_state import decode_state, encode_state
from a2a_proxy.model.values import Connection, Exchange, Finding, Observation, Task
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.observer import Observer, ObserverState
from a2a_proxy.redaction import Redactor
from support_conversation import Grpc, Http, Script

DATA = Path(__file__).parent / "data"
KEY = b"k" * 32
START = 1_700_000_000_000_000_000
UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


def of_decoders(each: Observation) -> bool:
    """Return whether a finding comes from the decoders or the recorder, and not from a rule:
    scripts of tests may break rules of A2A."""
    return isinstance(each, Finding) and not each.rule.startswith("A2A-")


def opening(number: int, at: int, upstream: str = "agent:8000") -> list[Chunk]:
    """Return OPEN and DIALED."""
    facts = ConnectionFacts(
        client=f"127.0.0.1:{5000 + number}", listen="127.0.0.1:9000", upstream=upstream
    )
    return [
        Chunk(number, ChunkKind.OPEN, UP, at, msgspec.json.encode(facts)),
        Chunk(
            number,
            ChunkKind.DIALED,
            UP,
            at,
            msgspec.json.encode(DialFacts(upstream, peer="127.0.0.1:8000")),
        ),
    ]


def scripted(
    script: Script, number: int = 1, start: int = START, kind: ChunkKind = ChunkKind.DATA
) -> list[Chunk]:
    """Return a script as one connection, with a microsecond for each step."""
    chunks = opening(number, start)
    for index, (what, direction, data) in enumerate(script.steps, 1):
        step = {"data": kind, "eof": ChunkKind.EOF, "reset": ChunkKind.RESET}[what]
        chunks.append(Chunk(number, step, direction, start + index * 1000, data))
    return [*chunks, Chunk(number, ChunkKind.CLOSED, UP, chunks[-1].at + 1000)]


def captured(name: str) -> list[Chunk]:
    """Return a real capture from `tests/data`."""
    chunks: list[Chunk] = []
    opened: set[int] = set()
    for line in (DATA / f"capture_{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        number, at = record["conn"] + 1, record["at"]
        if number not in opened:
            opened.add(number)
            chunks += opening(number, at)
        kind = ChunkKind.DATA if "b64" in record else ChunkKind.EOF
        chunks.append(
            Chunk(
                number, kind, Direction(record["dir"]), at, base64.b64decode(record.get("b64", ""))
            )
        )
    return chunks + [
        Chunk(number, ChunkKind.CLOSED, UP, chunks[-1].at + 1) for number in sorted(opened)
    ]


def streaming(task: str, *, rpc_id: int = 1, chunks: int = 3) -> Http:
    """Return one streamed call: task, artifact in chunks, completion."""
    http = (
        Http()
        .call("SendStreamingMessage", {"message": MESSAGE}, rpc_id, A2A_Version="1.0")
        .stream()
    )
    status = {"state": "TASK_STATE_WORKING"}
    http.rpc_event(
        {
            "task": {
                "id": task,
                "contextId": f"c-{task}",
                "status": {"state": "TASK_STATE_SUBMITTED"},
            }
        },
        rpc_id,
    )
    http.rpc_event(
        {"statusUpdate": {"taskId": task, "contextId": f"c-{task}", "status": status}}, rpc_id
    )
    for index in range(chunks):
        update = {
            "taskId": task,
            "contextId": f"c-{task}",
            "artifact": {"artifactId": "a", "parts": [{"text": f"part {index} "}]},
            "append": index > 0,
            "lastChunk": index == chunks - 1,
        }
        http.rpc_event({"artifactUpdate": update}, rpc_id)
    done = {"state": "TASK_STATE_COMPLETED"}
    http.rpc_event(
        {"statusUpdate": {"taskId": task, "contextId": f"c-{task}", "status": done}}, rpc_id
    )
    return http.done()


MESSAGE = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}


def unary(task: str = "t-u") -> Http:
    """Return one unary call."""
    result = {
        "task": {"id": task, "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}
    }
    return Http().call("SendMessage", {"message": MESSAGE}, A2A_Version="1.0").result(result)


def grpc_call() -> Grpc:
    """Return one gRPC call with a task id, answered with an error."""
    grpc = Grpc().open("/lf.a2a.v1.A2AService/GetTask", a2a_version="1.0").send(b"\x12\x03t-g")
    return grpc.trailers_only(5, grpc_message="no such task")


def interleaved(*sessions: list[Chunk]) -> list[Chunk]:
    """Return several connections at once, with one chunk of each in turn, in order of time."""
    queues = [list(session) for session in sessions]
    mixed: list[Chunk] = []
    while any(queues):
        mixed += [queue.pop(0) for queue in queues if queue]
    return [
        msgspec.structs.replace(chunk, at=START + index * 1000) for index, chunk in enumerate(mixed)
    ]


def bytewise(chunks: Iterable[Chunk], size: int = 1) -> Iterator[Chunk]:
    """Yield the same bytes in pieces of `size`."""
    for chunk in chunks:
        if chunk.kind in (ChunkKind.DATA, ChunkKind.OURS) and chunk.data:
            for index in range(0, len(chunk.data), size):
                yield msgspec.structs.replace(chunk, data=chunk.data[index : index + size])
        else:
            yield chunk


class Seen(msgspec.Struct):
    """The output of an observer for a session: the last snapshots by key."""

    out: list[Observation]
    connections: dict[int, Connection]
    exchanges: dict[int, Exchange]
    tasks: dict[tuple[str, str], Task]


def fresh() -> Observer:
    return Observer(Redactor(KEY))


def reloaded(observer: Observer, tasks: Iterable[Task] = ()) -> Observer:
    """Return the observer restored from its state as msgpack, as in a snapshot file."""
    state = decode_state(encode_state(observer.save()), ObserverState)
    again = Observer.restore(state, Redactor(KEY))
    again.load_tasks(list(tasks))
    return again


def observe(
    chunks: Iterable[Chunk], *, restart_at: Iterable[int] = (), commit_every: int = 1
) -> Seen:
    """Feed chunks to an observer; save and restore it before the chunks with these numbers, and
    fetch changes at this interval."""
    observer, seen, restarts = fresh(), Seen([], {}, {}, {}), set(restart_at)
    for index, chunk in enumerate(chunks):
        if index in restarts:
            note(observer, seen)
            observer = reloaded(observer, seen.tasks.values())
        observer.feed(chunk, seen.out)
        if index % commit_every == 0:
            note(observer, seen)
    note(observer, seen)
    return seen


def note(observer: Observer, seen: Seen) -> None:
    """Store the changes."""
    changes = observer.pop_changes()
    seen.connections.update((connection.id, connection) for connection in changes.connections)
    seen.exchanges.update((exchange.id, exchange) for exchange in changes.exchanges)
    seen.tasks.update(((task.agent, task.task_id), task) for task in changes.tasks)
