"""Several hundred secrets through observer, redactor, rules, recording and console: none is in the
output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import support_planted
from a2a_proxy.cli.console import TextConsole
from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.status import ExchangeStatus, FindingStatus
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import RedactionPolicy, Redactor
from support_conversation import Grpc, Http
from support_observer import scripted
from support_pipe import Stdio
from support_planted import REMAINS, Plant, Rest
from support_recording import facts
from support_secrets import Canaries, encode_message, everything

KEY = b"k" * 32
SECRETS = support_planted.planted()
SECRETS += support_planted.structured()
WORKING = {"state": "TASK_STATE_WORKING"}


def said(text: str) -> dict[str, Any]:
    return {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}


def http(plants: list[tuple[str, str]]) -> Http:
    """Return HTTP traffic with one call for each HTTP plant."""
    http = Http()
    for number, (place, line) in enumerate(plants, 1):
        path, fields, message, metadata, text = "/", {}, said("hello"), {}, "hello"
        match place:
            case "named header":
                name, _, value = line.partition(": ")
                fields = {name: value}
            case "named query":
                path = f"/?page=2&{line}"
            case "data":
                message = {**message, "parts": [{"data": json.loads(line)}]}
            case "path":
                path = line
            case "query":
                path = f"/?page=2&note={quote(line, safe='')}"
            case "header":
                fields = {"X_Note": line}
            case "message":
                message = said(line)
            case "metadata":
                metadata = {"note": line}
            case "artifact":
                text = line
            case "card":
                card = {
                    "name": "agent",
                    "description": line,
                    "supportedInterfaces": [],
                    "skills": [],
                }
                http.request("GET /.well-known/agent-card.json").answer(card)
                continue
        params = {"message": message, "metadata": metadata}
        http.call("SendStreamingMessage", params, number, path, A2A_Version="1.0", **fields)
        if place == "error":
            error = {"code": -32603, "message": f"it failed: {line}", "data": []}
            http.answer({"jsonrpc": "2.0", "id": number, "error": error})
            continue
        task = f"t-{number}"
        artifact = {"artifactId": "a", "parts": [{"text": text}]}
        http.stream().rpc_event({"task": {"id": task, "contextId": "c", "status": WORKING}}, number)
        http.rpc_event(
            {"artifactUpdate": {"taskId": task, "contextId": "c", "artifact": artifact}}, number
        ).done()
    return http


def grpc(plants: list[tuple[str, str]]) -> Grpc:
    """Return gRPC traffic with one stream for each plant."""
    grpc = Grpc()
    for number, (place, line) in enumerate(plants):
        message = said(line if place == "protobuf" else "hello")
        note = {"note": line if place == "struct" else "x"}
        request = encode_message(
            "1.0", "SendMessageRequest", {"message": message, "metadata": note}
        )
        stream = 2 * number + 1
        grpc.open("/lf.a2a.v1.A2AService/SendMessage", stream, a2a_version="1.0").send(
            request, stream
        )
        said_of_it = quote(f"it failed: {line}") if place == "grpc-message" else "it%20failed"
        grpc.trailers_only(13, stream, grpc_message=said_of_it)
    return grpc


def stdio(plants: list[tuple[str, str]]) -> Stdio:
    """Return stdio traffic with the plants on stderr."""
    found = Stdio()
    for _, line in plants:
        found.log(f"{line}\n".encode())
    return found.exit().closed()


@dataclass(frozen=True)
class Leak:
    """The output of a run."""

    files: bytes
    """The files of the recording."""
    stored: bytes
    """The whole content of the recording, decompressed."""
    console: bytes


def run(folder: Path, lines: list[tuple[str, str]], policy: RedactionPolicy) -> Leak:
    """Record and print a session with these lines at these places."""
    redactor = Redactor(KEY, policy)
    observer = Observer(redactor)
    out: list[Observation] = []
    places = {"protobuf": 1, "struct": 1, "grpc-message": 1, "stderr": 2}
    of: list[list[tuple[str, str]]] = [
        [line for line in lines if places.get(line[0], 0) == kind] for kind in range(3)
    ]
    chunks: list[Chunk] = [*scripted(http(of[0]), 1), *scripted(grpc(of[1]), 2)]
    chunks += [replaced(chunk, 3) for chunk in stdio(of[2]).session()]
    for chunk in chunks:
        observer.feed(chunk, out)
    changes = observer.pop_changes()
    findings = [each for each in out if type(each) is Finding]
    with (folder / "console.txt").open("w") as printed:
        console = TextConsole(printed, printed, quiet=False)
        for exchange in changes.exchanges:
            console.show_status(ExchangeStatus(exchange, "agent:8000", live=False, lag=0))
        for finding in findings:
            console.show_status(FindingStatus(finding, "SendMessage"))
        for _, line in lines:
            console.show_note(redactor.redact_text(line))
            console.close()
    writer = Writer(folder / "r.a2a.db", facts(1, started=chunks[0].at))
    writer.write([each for each in out if type(each) is Frame], findings, changes)
    writer.finish(chunks[-1].at)
    files = b"".join(path.read_bytes() for path in folder.iterdir())
    return Leak(files, everything(folder / "r.a2a.db"), (folder / "console.txt").read_bytes())


def replaced(chunk: Chunk, connection: int) -> Chunk:
    """Return the chunk with another connection number."""
    return Chunk(
        connection if chunk.connection else 0, chunk.kind, chunk.direction, chunk.at, chunk.data
    )


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run with the default policy, including the rest of its data."""
    lines = [(each.place, each.line) for each in (*SECRETS, *REMAINS)]
    return run(tmp_path_factory.mktemp("leak"), lines, RedactionPolicy())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run without redaction."""
    return run(
        tmp_path_factory.mktemp("kept"),
        [(each.place, each.line) for each in SECRETS],
        RedactionPolicy(none=True),
    )


def readable(plants: list[Plant], data: bytes) -> list[str]:
    """Return the plants whose secret is in the data, in any encoding."""
    canaries = Canaries()
    canaries.at = {each.what: each.secret for each in plants}
    return canaries.found_in(data)


def test_planted_secrets_are_many_and_distinct() -> None:
    """Each secret is unique, and every place has several."""
    assert len(SECRETS) > 350
    assert len({each.secret for each in SECRETS}) == len(SECRETS)
    assert all(
        sum(each.place == place for each in SECRETS) >= 10 for place in support_planted.PLACES
    )


def test_all_secrets_are_recorded_without_redaction(kept: Leak) -> None:
    """Without redaction each secret is in the recording, so each was really sent."""
    assert {each.what for each in SECRETS} - set(readable(SECRETS, kept.stored)) == set()


def test_no_secret_is_in_the_files(leak: Leak) -> None:
    assert readable(SECRETS, leak.files) == []


def test_no_secret_is_in_the_recording(leak: Leak) -> None:
    """No secret is in frames, heads, errors, tasks, cards and findings."""
    assert leak.stored.count(b"redacted-") > len(SECRETS)
    assert readable(SECRETS, leak.stored) == []


def test_no_secret_is_on_the_console(leak: Leak) -> None:
    assert leak.console.count(b"redacted-") >= len(SECRETS)
    assert readable(SECRETS, leak.console) == []


@pytest.mark.parametrize("rest", REMAINS, ids=lambda rest: rest.why)
def test_documented_exceptions_remain(leak: Leak, rest: Rest) -> None:
    assert rest.secret.encode() in leak.stored
    assert json.dumps(rest.line)[1:-1].encode() in leak.stored
