"""A call in other forms: each is valid, and gets the recorded answer from a real agent."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from a2a_inspect.commands.show_as import show_as
from a2a_inspect.formats.copying.call import CopiedCall, NotOffered, load_call
from a2a_inspect.formats.copying.forms import FORMS
from a2a_inspect.formats.copying.literal import python_literal
from a2a_inspect.formats.copying.pytest_case import artifacts, errors, states
from a2a_inspect.formats.copying.shell import curl_command
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding, Connection
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import make_key
from support_inspect import exchange, request, status
from support_peers import ENVIRONMENTS, Agent, agent, require_peers
from support_recording import STARTED
from support_thin import thin

RECORDINGS = Path(__file__).parents[4] / "recordings"
SAMPLES = sorted(path.name for path in RECORDINGS.glob("*.a2a.jsonl"))
SECONDS = 120


def recorded(name: str, operation: str) -> CopiedCall:
    """The first call of a sample with this operation that ended well."""
    with open_recording_or_cassette(RECORDINGS / name) as recording:
        rows = (
            row
            for row in recording.read_exchanges()
            if row.exchange.operation == operation and not row.exchange.error
        )
        call = load_call(recording, next(rows).key)
    assert call is not None
    return call


def made(name: str, call: CopiedCall) -> str:
    return FORMS[name].make(call, None).decode()


def at(call: CopiedCall, where: Agent) -> CopiedCall:
    """The same call to another agent."""
    address = where.grpc_target if call.exchange.binding == "grpc" else f"127.0.0.1:{where.http}"
    return msgspec.structs.replace(call, connection=Connection(1, "", "", address, 0, peer=address))


def seen(call: CopiedCall) -> tuple[list[str], list[str], list[object]]:
    """What a call's answers say."""
    answers = [decode_payload(frame.payload, frame.schema) for frame in call.responses]
    return states(answers), artifacts(answers), errors(answers)


@pytest.mark.parametrize("odd", [None, 1, {}, [None], [{"name": {}}], [{"name": None}]])
def test_odd_artifacts_have_no_names(odd: object) -> None:
    """Agno writes `"artifacts": null`."""
    named = {"artifact": {"name": "report"}}
    assert artifacts([{"result": {"artifacts": odd}}, named, named]) == ["report"]


@pytest.mark.parametrize("name", [*SAMPLES, "frameworks/agno.a2a.jsonl"])
def test_every_call_of_every_sample_has_every_form(name: str) -> None:
    """A form is refused with a reason, or is right by its own grammar and harmless; raw is the
    request's bytes."""
    offered = set()
    with open_recording_or_cassette(RECORDINGS / name) as recording:
        for row in recording.read_exchanges():
            call = load_call(recording, row.key)
            assert call is not None
            for form in FORMS.values():
                try:
                    data = form.make(call, None)
                except NotOffered:
                    continue
                offered.add(form.name)
                if form.name == "raw":
                    assert data == call.requests[0].payload
                    continue
                text = data.decode()
                if form.name == "json":
                    assert json.loads(text)["id"] == row.exchange.id
                elif form.name in ("curl", "grpcurl"):
                    assert text.isascii()
                    assert "\x1b" not in text
                    assert shlex.split(text)[0] == form.name
                elif form.name in ("python", "pytest"):
                    compile(text, form.name, "exec")
                else:
                    assert text.startswith(f"place: #{row.exchange.id}")
    assert {"json", "raw", "ids"} <= offered


def test_secrets_stay_labels() -> None:
    """What was redacted is a label in every form."""
    call = recorded("demo.a2a.jsonl", "SendMessage")
    for form in ("curl", "python", "pytest"):
        assert "Bearer redacted-" in made(form, call)


@pytest.fixture(scope="module")
def sdk1() -> Iterator[Agent]:
    require_peers("sdk1")
    with agent("sdk1") as one:
        yield one


@pytest.fixture(scope="module")
def sdk03() -> Iterator[Agent]:
    require_peers("sdk03")
    with agent("sdk03") as one:
        yield one


@pytest.fixture
def peer(request: pytest.FixtureRequest, name: str) -> Agent:
    """The agent of the kind that a sample was recorded from."""
    return request.getfixturevalue("sdk1" if "1.x" in name else "sdk03")  # type: ignore[no-any-return]


HTTP = [
    f"sdk-{line}-{binding}.a2a.jsonl" for line in ("1.x", "0.3") for binding in ("jsonrpc", "rest")
]
GRPC = ["sdk-1.x-grpc.a2a.jsonl", "sdk-0.3-grpc.a2a.jsonl"]
BOTH = ["SendMessage", "SendStreamingMessage"]


@pytest.mark.peers
@pytest.mark.parametrize("operation", BOTH)
@pytest.mark.parametrize("name", HTTP)
def test_curl_gets_the_same_response(name: str, operation: str, peer: Agent) -> None:
    call = recorded(name, operation)
    ran = subprocess.run(
        shlex.split(made("curl", at(call, peer))), capture_output=True, timeout=SECONDS, check=True
    )
    output = ran.stdout.decode().replace("\r\n", "\n")
    events = [
        "\n".join(line[5:] for line in each.split("\n") if line[:5] == "data:")
        for each in output.split("\n\n")
    ]
    answers = [json.loads(each) for each in (events if "data:" in output else [output]) if each]
    assert (states(answers), artifacts(answers), errors(answers)) == seen(call)
    assert seen(call)[0]


@pytest.mark.peers
@pytest.mark.parametrize("operation", BOTH)
@pytest.mark.parametrize("name", GRPC)
def test_grpcurl_commands_are_complete(name: str, operation: str, peer: Agent) -> None:
    """Descriptors, address, method, headers and message, as that program takes them, bring the same
    answer."""
    call = recorded(name, operation)
    words = shlex.split(made("grpcurl", at(call, peer)))
    assert words[:2] == ["grpcurl", "-plaintext"]
    options = dict(zip(words[2:-2:2], words[3:-2:2], strict=True))
    assert options.keys() <= {"-protoset", "-H", "-d"}
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(options["-protoset"]).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)  # type: ignore[no-untyped-call]
    service, _, method = words[-1].partition("/")
    asked = pool.FindServiceByName(service).FindMethodByName(method)  # type: ignore[no-untyped-call]
    message = ParseDict(json.loads(options["-d"]), GetMessageClass(asked.input_type)())
    assert message.SerializeToString() == call.requests[0].payload
    answer = GetMessageClass(asked.output_type)
    metadata = [tuple(options["-H"].split(": ", 1))] if "-H" in options else []
    with grpc.insecure_channel(words[-2]) as channel:
        kind = channel.unary_stream if asked.server_streaming else channel.unary_unary
        got = kind(f"/{words[-1]}", type(message).SerializeToString, answer.FromString)(
            message, metadata=metadata
        )
        answers = [MessageToDict(each) for each in (got if asked.server_streaming else [got])]
    assert (states(answers), artifacts(answers), errors(answers)) == seen(call)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("name", "operation"), [*zip(HTTP, [*BOTH, *BOTH], strict=True), *zip(GRPC, BOTH, strict=True)]
)
def test_python_runs_with_the_sdk(name: str, operation: str, peer: Agent, tmp_path: Path) -> None:
    """The program ends well in an environment that has nothing but the SDK, and prints how the task
    ended."""
    call = recorded(name, operation)
    (tmp_path / "call.py").write_text(made("python", at(call, peer)))
    line = [str(ENVIRONMENTS / peer.kind / "bin" / "python"), "call.py"]
    ran = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "completed" in ran.stdout.lower()


def run_cases(folder: Path, call: CopiedCall, *words: str) -> str:
    """The case of a call, and one that expects another end, run as the user of the plug-in runs
    them."""
    text = made("pytest", call)
    changed = text.replace("'completed']", "'rejected']").replace(
        "'TASK_STATE_COMPLETED']", "'TASK_STATE_REJECTED']"
    )
    assert changed != text
    (folder / "test_good.py").write_text(text)
    (folder / "test_bad.py").write_text(changed)
    line = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--rootdir",
        ".",
        ".",
    ]
    ran = subprocess.run(
        [*line, *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return ran.stdout


def test_the_pytest_case_replays(tmp_path: Path) -> None:
    """From the recording that it was copied from; where another state is expected it fails."""
    name = "sdk-1.x-rest.a2a.jsonl"
    for module in ("test_good", "test_bad"):
        folder = tmp_path / "cassettes" / module
        folder.mkdir(parents=True)
        shutil.copy(RECORDINGS / name, folder / "test_send_streaming_message.a2a.jsonl")
    output = run_cases(tmp_path, recorded(name, "SendStreamingMessage"))
    assert "1 failed, 1 passed" in output, output
    assert "FAILED test_bad.py" in output


@pytest.mark.peers
@pytest.mark.parametrize("name", thin([HTTP[0], HTTP[-1]], 2))
def test_the_pytest_case_records_its_agent(name: str, peer: Agent, tmp_path: Path) -> None:
    """It passes against the recorded agent and records a cassette; a failing case records none."""
    call = at(recorded(name, "SendStreamingMessage"), peer)
    output = run_cases(tmp_path, call, "--a2a-record-mode=once", f"--a2a-upstream={call.url}")
    assert "1 failed, 1 passed" in output, output
    cassettes = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.a2a.jsonl")]
    assert cassettes == [Path("cassettes/test_good/test_send_streaming_message.a2a.jsonl")]


@pytest.mark.peers
@pytest.mark.parametrize("name", GRPC)
def test_the_pytest_case_of_a_grpc_call_passes(name: str, peer: Agent, tmp_path: Path) -> None:
    """Besides the agent it needs grpcio and the SDK's messages alone."""
    (tmp_path / "case.py").write_text(made("pytest", recorded(name, "SendStreamingMessage")))
    code = (
        "import case, types; case.test_send_streaming_message("
        f"types.SimpleNamespace(grpc_target={peer.grpc_target!r}))"
    )
    line = [str(ENVIRONMENTS / peer.kind / "bin" / "python"), "-c", code]
    ran = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stderr


def by_hand(text: str, **more: object) -> CopiedCall:
    """A call of a text, over JSON-RPC."""
    connection = Connection(
        1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED, peer="10.0.0.7:8000"
    )
    headers = {"request_headers": ((b"Content-Type", b"application/json"),)}
    return CopiedCall(
        1,
        exchange(2, **{**headers, **more}),
        connection,
        (request(2, text), status(2, 1, "Thinking")),
    )


@pytest.mark.parametrize(
    "text", ['it\'s "quoted" $HOME `id` !', "\x1b[31m\u202e\x9b😀", "a\\b\nc", "@/etc/passwd"]
)
def test_payloads_pass_a_shell_unchanged(text: str) -> None:
    """Bytes of the body come out of the shell's hands as JSON of the same value."""
    words = shlex.split(curl_command(by_hand(text)))
    body = json.loads(words[words.index("--data-raw") + 1])
    assert body["params"]["message"]["parts"] == [{"text": text}]
    assert words[-1] == "http://agent:8000/rpc"


def test_headers_with_control_characters_are_not_offered() -> None:
    """Control characters become symbols when the recording is read; such a header is not sent
    on."""
    with pytest.raises(NotOffered, match="unsafe in a shell"):
        curl_command(
            by_hand("hello", request_headers=((b"X-Odd", b"\x1b[31mred"),), target="/\u202e")
        )


@pytest.mark.parametrize(
    ("upstream", "peer", "where"),
    [
        ("agent:8000", "10.0.0.7:8000", "http://agent:8000"),
        ("agent:8000", "10.0.0.7:50051", "http://10.0.0.7:50051"),
        ("https://agent.example", "10.0.0.7:443", "https://agent.example"),
        ("https://agent.example:8443/base", "10.0.0.7:8443", "https://agent.example:8443"),
        ("", "10.0.0.7:8000", "http://10.0.0.7:8000"),
    ],
)
def test_the_address_of_the_agent_is_named(upstream: str, peer: str, where: str) -> None:
    """As the user named it; another port of it is where its card led the call."""
    call = by_hand("hello")
    assert (
        msgspec.structs.replace(call, connection=Connection(1, "", "", upstream, 0, peer=peer)).url
        == where
    )


def test_forms_that_are_not_offered_have_a_reason() -> None:
    """Each with its reason: a live call has no end to expect, a stdio agent no address, a call on a
    WebSocket no command, a cut request no sense."""
    live = by_hand("hello", closed=0, how="")
    with pytest.raises(NotOffered, match="did not end"):
        made("pytest", live)
    with pytest.raises(NotOffered, match="talks over stdin"):
        made("curl", recorded("stdio.a2a.jsonl", "SendMessage"))
    socket = by_hand("hello")
    exchange = msgspec.structs.replace(socket.exchange, binding=Binding.WEBSOCKET)
    with pytest.raises(NotOffered, match="on a WebSocket"):
        made("curl", msgspec.structs.replace(socket, exchange=exchange))
    cut = msgspec.structs.replace(live.frames[0], truncated=True)
    with pytest.raises(NotOffered, match="only the beginning"):
        made("raw", msgspec.structs.replace(live, frames=(cut,)))


def test_json_and_raw_of_one_frame() -> None:
    """JSON and raw are those of the frame, ids too."""
    call = recorded("demo.a2a.jsonl", "SendStreamingMessage")
    frame = call.responses[-1]
    assert FORMS["raw"].make(call, frame) == frame.payload
    assert "statusUpdate" in json.loads(FORMS["json"].make(call, frame))
    ids = FORMS["ids"].make(call, frame).decode().splitlines()
    assert f"task: {frame.task_id}" in ids
    assert ids[0] == f"place: #{call.exchange.id}.{frame.seq}"


def test_show_as(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """What a file gets is exact; what is not there, or has no such form, is one error."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        show_as(recording, ("2.0",), "raw")
        assert (
            capfdbinary.readouterr().out
            == next(recording.read_frames(make_key(1, 2))).frame.payload + b"\n"
        )
        for words, form, wrong in (
            ((), "json", "no exchange given"),
            (("1:",), "json", "is not an exchange"),
            (("2.999",), "json", "has no frame 2.999"),
            (("2",), "grpcurl", "cannot be shown as grpcurl: it was not gRPC"),
        ):
            with pytest.raises(UserError, match=wrong):
                show_as(recording, words, form)


@pytest.mark.parametrize(
    "value", [{}, [], None, {"a": [1, {"b": "x" * 120, "c": [True, None, 1.5]}]}, "\x1b\u202e"]
)
def test_literals_are_read_back(value: object) -> None:
    """And nothing in them acts on a terminal."""
    text = python_literal(value)
    assert eval(text) == value
    assert text.replace("\n", "").isprintable()
