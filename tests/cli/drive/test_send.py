"""`a2a-proxy send`: one recorded call again, with the agent of the demo and small agents."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.cli.drive.options import send_options
from a2a_proxy.cli.drive.send import run_send
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow
from support_cli import SECONDS, environment, program, run_here
from support_drive import SAMPLES, Ports, demo_agent, live_agent

_DEFAULTS: dict[str, Any] = {
    "place": "3",
    "assignments": (),
    "request": None,
    "edit": False,
    "as_recorded": False,
    "force": False,
    "diff": False,
    "header": (),
    "timeout": 30.0,
    "binding": None,
    "dialect": None,
    "command": (),
    "upstream": "",
}
Send = Callable[..., int]


@pytest.fixture(scope="module")
def agent() -> Iterator[Ports]:
    with demo_agent() as ports:
        yield ports


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: Ports) -> Send:
    """Sends a call of the demo's recording to the demo's agent; the exit code."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))

    def run(place: str, sample: str = "demo", **more: Any) -> int:
        recording = SAMPLES / f"{sample}.a2a.jsonl"
        return run_send(
            send_options(
                **{**_DEFAULTS, "recording": recording, **agent.words, "place": place, **more}
            )
        )

    return run


def sent_call(file: Path) -> tuple[ExchangeRow, list[Any], list[str]]:
    """The newest exchange of a recording, its decoded requests, and the notes."""
    with Recording(file) as recording:
        row = list(recording.read_exchanges())[-1]
        frames = [
            each.frame
            for each in recording.read_frames(row.key)
            if each.frame.direction.name == "TO_AGENT"
        ]
        requests = [
            decode_payload(frame.payload, frame.schema) for frame in frames if frame.payload
        ]
        return row, requests, [note.note.text for note in recording.read_notes()]


@pytest.mark.parametrize(
    ("place", "message"), [("2", "params.message"), ("3", "message"), ("6", "message")]
)
def test_a_call_of_each_binding_is_sent_again_edited(
    place: str, message: str, send: Send, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON-RPC, REST, gRPC, two of them streams: the new text, a new message id, the answer, and
    where it came from."""
    kept = tmp_path / "sent.a2a.db"
    edited = "Plan one day in Lisbon, please"
    assert send(place, record=kept, assignments=(f"message.parts[0].text={edited}",)) == 0
    out = capsys.readouterr()
    answers = [json.loads(line) for line in out.out.splitlines()]
    assert "TASK_STATE_" in json.dumps(answers[0])
    row, (request,), notes = sent_call(kept)
    for name in message.split("."):
        request = request[name]
    assert request["parts"][0]["text"] == edited
    assert notes == [f"edited and sent again: #{place} of {SAMPLES / 'demo.a2a.jsonl'}"]
    assert f"a2a-inspect show {kept} 1" in out.err
    assert row.exchange.operation in out.err
    assert kept.exists()


def test_message_ids_are_new_unless_they_are_kept(send: Send, tmp_path: Path) -> None:
    """Task ids stay: the agent knows them."""
    kept, again = tmp_path / "kept.a2a.db", tmp_path / "again.a2a.db"
    read_cassette(SAMPLES / "demo.a2a.jsonl", recorded := tmp_path / "recorded.a2a.db")
    with Recording(recorded) as recording:
        row = recording.find_exchanges("op:SendMessage")
        frames = [each.frame for each in recording.read_frames(list(row)[-1].key)]
    message = decode_payload(frames[0].payload, frames[0].schema)["message"]
    send("4", record=kept, as_recorded=True)
    send("4", record=again)
    assert sent_call(kept)[1] == [{**sent_call(kept)[1][0], "message": message}]
    new = sent_call(again)[1][0]["message"]
    assert new["taskId"] == message["taskId"]
    assert new["messageId"] != message["messageId"]
    assert new["parts"] == message["parts"]
    assert sent_call(again)[2] == [f"sent again: #4 of {SAMPLES / 'demo.a2a.jsonl'}"]


def test_the_difference_from_the_recorded_answer(
    send: Send, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the answer: an edit of the request is no difference."""
    assert send("6", diff=True) == 0
    assert "same" in capsys.readouterr().out
    assert send("3", diff=True, assignments=("message.parts[0].text=Plan one day",)) == 1
    out = capsys.readouterr().out
    assert "different: " in out
    assert "request" not in out.partition("different: ")[2]


def test_a_stdio_agent_is_started_for_the_call(
    send: Send, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finding about the calls that are not sent is no difference; the hint names both places with
    their sessions."""
    story = Path(__file__).resolve().parents[2] / "peers" / "stdio" / "story.py"
    more = {"command": (sys.executable, str(story)), "upstream": "", "upstream_grpc": ""}
    assert send("2", "stdio", diff=True, **more) == 0
    out = capsys.readouterr()
    assert "same" in out.out
    assert f"a2a-inspect diff {SAMPLES / 'stdio.a2a.jsonl'} 1:2 " in out.err


def test_members_of_path_and_query_are_edited(send: Send, tmp_path: Path) -> None:
    """An error of the agent is exit code 1."""
    kept = tmp_path / "sent.a2a.db"
    assert send("5", record=kept, assignments=("id=a b", "historyLength=3")) == 1
    assert sent_call(kept)[0].exchange.target.endswith("/tasks/a%20b?historyLength=3")


def test_the_request_is_edited_in_an_editor(
    send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON, in the dialect of the call; a file that is not saved sends nothing."""
    kept = tmp_path / "sent.a2a.db"
    script = tmp_path / "editor.py"
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    script.write_text(
        "import json, os, sys, time\n"
        "value = json.load(open(sys.argv[1]))\n"
        "value['message']['parts'][0]['text'] = 'typed in an editor'\n"
        "json.dump(value, open(sys.argv[1], 'w'))\n"
        "os.utime(sys.argv[1], (time.time() + 9, time.time() + 9))\n"
    )
    assert send("3", record=kept, edit=True) == 0
    assert sent_call(kept)[1][0]["message"]["parts"][0]["text"] == "typed in an editor"
    script.write_text(
        "import sys, os\nopen(sys.argv[1], 'w').write('{')\nos.utime(sys.argv[1], (2e9, 2e9))\n"
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError, match="the edited request is not JSON") as refused:
        send("3", edit=True)
    (edit,) = tmp_path.glob("a2a-proxy-edit-*.json")  # nothing of it is lost
    assert (edit.read_text(), edit.stat().st_mode & 0o777) == ("{", 0o600)
    assert refused.value.hint.endswith(
        f"; your edit is kept; correct it there, and send it: --request {edit}"
    )
    script.write_text("")
    with pytest.raises(UserError, match="the editor saved nothing"):
        send("3", edit=True)
    monkeypatch.setenv("VISUAL", "no-such-editor-here")
    with pytest.raises(UserError, match="the editor failed"):
        send("3", edit=True)


@pytest.mark.parametrize(
    ("place", "more", "message"),
    [
        ("three", {}, "'three' is not the place of a call"),
        ("99", {}, "the recording has no call 99"),
        ("3", {"upstream": ""}, "--upstream is missing"),
        ("3", {"timeout": 0.0}, "--timeout"),
        ("3", {"assignments": ("text",)}, "--set: 'text' is not the path of one value"),
        ("3", {"assignments": ("message.parts[*].text=a",)}, "is not the path of one value"),
        (
            "3",
            {"assignments": ("message.parts[7].text=a",)},
            r"--set \$.message.parts\[7\].text: \$.message.parts has 1 item$",
        ),
        (
            "3",
            {"assignments": ("message.messageId.a=1",)},
            r"\$.message.messageId is not an object",
        ),
        ("3", {"assignments": ("message[0]=1",)}, r"\$.message is not a list"),
        (
            "3",
            {"assignments": ("message.parts[0].text=3",)},
            r"#3 SendMessage is not valid: `message.parts\[0\].text`",
        ),
        (
            "2",
            {"assignments": ("message.parts=[]",)},
            r"#2 SendStreamingMessage is not valid: .*message.parts",
        ),
        (
            "6",
            {"assignments": ("message.more=3",)},
            'cannot be encoded: .*"SendMessageRequest.message"',
        ),
        ("6", {"assignments": ("message.parts=3",), "force": True}, "cannot be encoded"),
        ("5", {"assignments": ("id=",)}, "cannot be encoded: the REST path of GetTask needs an id"),
        (
            "1",
            {"assignments": ("id=1",)},
            "#1 GetAgentCard is not an A2A request that can be edited",
        ),
        ("3", {"upstream": "127.0.0.1:1"}, r"cannot reach 127\.0\.0\.1:1"),
    ],
)
def test_bad_input_is_refused_with_a_hint(
    send: Send, place: str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as wrong:
        send(place, **more)
    assert wrong.value.code == 2
    assert wrong.value.hint
    assert "\n" not in wrong.value.message


def test_a_request_that_is_not_valid_is_sent_with_force(send: Send, tmp_path: Path) -> None:
    kept = tmp_path / "sent.a2a.db"
    send("3", record=kept, force=True, assignments=("message.parts[0].text=3", "message.more=true"))
    assert sent_call(kept)[1][0]["message"]["parts"] == [{"text": 3}]
    assert sent_call(kept)[1][0]["message"]["more"] is True


def test_the_request_of_a_file(send: Send, tmp_path: Path) -> None:
    """As `--edit` would save it; `--set` applies to it."""
    kept, file = tmp_path / "sent.a2a.db", tmp_path / "request.json"
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "from a file"}]}
    file.write_text(json.dumps({"message": message}))
    assert (
        send("3", record=kept, request=file, assignments=("message.parts[0].mediaType=text/plain",))
        == 0
    )
    (request,) = sent_call(kept)[1]
    assert request["message"]["parts"] == [{"text": "from a file", "mediaType": "text/plain"}]
    for text, error in (("[1]", "is not a JSON object"), ("{", "is not JSON")):
        file.write_text(text)
        with pytest.raises(UserError, match=f"--request {file} {error}"):
            send("3", request=file)
    with pytest.raises(UserError, match=r"cannot read --request .*no such file"):
        send("3", request=tmp_path / "gone")


def test_labels_in_later_messages_of_a_live_call_are_refused(send: Send, tmp_path: Path) -> None:
    """With the place of each: --set fills the first message only."""
    changed = tmp_path / "labelled.a2a.jsonl"
    words = (
        "export",
        "jsonl",
        SAMPLES / "live-bidi.a2a.jsonl",
        "-o",
        changed,
        "--redact",
        "regex:to Frankfurt",
    )
    assert run_here(tmp_path / "state", *words).code == 0
    with pytest.raises(
        UserError, match=r"labels of secrets, .*: \$\.message\.parts\[0\]\.text of #2\.\d+$"
    ) as wrong:
        run_send(
            send_options(
                **{**_DEFAULTS, "recording": changed, "upstream": "127.0.0.1:1", "place": "2"}
            )
        )
    assert wrong.value.hint == "choose another call: these cannot be filled"


def test_a_stdio_call_names_the_command_that_sends_it(send: Send) -> None:
    with pytest.raises(UserError, match="was recorded over stdio") as wrong:
        send("1", "stdio")
    assert "a2a-proxy send" in wrong.value.hint


def test_labels_are_refused_unless_they_are_filled(
    send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent gets the secret; neither the message nor the command line in the recording has
    it."""
    labelled = (
        "$.pushNotificationConfig.token",
        "$.pushNotificationConfig.authentication.credentials",
    )
    with pytest.raises(UserError, match="contains labels of secrets") as wrong:
        send("20", "dialect-0.1", upstream_grpc="")
    assert all(each in wrong.value.message for each in labelled)
    kept = tmp_path / "sent.a2a.db"
    given = tuple(f"{place}=plain-{number}" for number, place in enumerate(labelled))
    monkeypatch.setattr(
        sys, "argv", ["a2a-proxy", "send", *(word for each in given for word in ("--set", each))]
    )
    with _http_agent() as (port, bodies):
        send(
            "20",
            "dialect-0.1",
            upstream=f"127.0.0.1:{port}",
            upstream_grpc="",
            record=kept,
            assignments=given,
        )
    config = json.loads(bodies[0])["params"]["pushNotificationConfig"]
    assert (config["token"], config["authentication"]["credentials"]) == ("plain-0", "plain-1")
    row, (request,), _ = sent_call(kept)
    assert "plain-" not in json.dumps(request)
    with Recording(kept) as recording:
        assert "plain-" not in repr(recording.read_session(row.session))


@contextlib.contextmanager
def _http_agent() -> Iterator[tuple[int, list[bytes]]]:
    """An agent without a card, which accepts every call; the bodies that it got."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            answer = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, bodies
        server.shutdown()


def test_typed_lines_are_further_messages_of_a_live_call(tmp_path: Path) -> None:
    """After the recorded ones, about the agent's task; the end of the input half-closes."""
    kept = tmp_path / "sent.a2a.db"
    with live_agent() as port:
        words = (
            "send",
            SAMPLES / "live-bidi.a2a.jsonl",
            "2",
            "--upstream",
            f"127.0.0.1:{port}",
            "--record",
            kept,
        )
        line = [program("a2a-proxy"), *map(str, words), "--upstream-grpc", f"127.0.0.1:{port}"]
        line += ["--set", "message.parts[0].text=deploy both"]
        env = environment(tmp_path / "state")
        done = subprocess.run(
            line,
            input="one more\n\nand the last",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=env,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    states = [json.loads(line)["statusUpdate"]["status"] for line in done.stdout.splitlines()]
    assert states[-1]["state"] == "TASK_STATE_COMPLETED"
    _, requests, _ = sent_call(kept)
    assert [each["message"]["parts"][0]["text"] for each in requests] == [
        *("deploy both", "to Frankfurt", "yes, go on", "one more", "and the last")
    ]
    assert [each["message"].get("taskId") for each in requests[3:]] == ["t-1", "t-1"]
    assert len({each["message"]["messageId"] for each in requests}) == 5
