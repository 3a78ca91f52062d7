"""`--redact` and `--redact-policy`: how they are parsed, and that recordings and exports follow
them."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_inspect.cli.main import cli
from a2a_proxy.cli.main import run_cli
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.replay.load import load_script
from support_cli import Agent, Proxy

RECORDINGS = Path(__file__).parents[2] / "recordings"
SDK = RECORDINGS / "sdk-1.x-jsonrpc.a2a.jsonl"
GRPC = RECORDINGS / "sdk-1.x-grpc.a2a.jsonl"


@pytest.fixture
def inspect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs `a2a-inspect` in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["a2a-inspect", *map(str, words)])
        code = run_cli("a2a-inspect", cli)
        return (code, *capsys.readouterr())

    return run


def test_a_policy_file_and_flags_are_combined(tmp_path: Path) -> None:
    """The file's words, then those of the flags; the same words whatever their order."""
    file = tmp_path / "policy.toml"
    file.write_text('preset = "pii"\nmembers = ["ssn"]\n[keep]\nheaders = ["x-a"]\n')
    words = policy_words(("header:x-b", "$..c"), file)
    assert words == ("pii", "header:x-b", "member:ssn", "path:$..c", "keep:header:x-a")
    assert policy_words((), None) == ()
    assert policy_words(("none",), None) == ("none",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("= 1", "is not TOML"),
        ("\0", "is not TOML"),
        ('preset = "loud"', "unknown preset 'loud'"),
        ('heders = ["x"]', "unknown setting 'heders'"),
        ('patterns = ["("]', "not a regular expression"),
        ("metadata-only = 3", "must be true or false"),
        ('paths = "x"', "must be a list of non-empty strings"),
    ],
)
def test_an_invalid_policy_file_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    """One clear line with the file's name, and a hint."""
    file = tmp_path / "policy.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        policy_words((), file)
    assert "policy.toml" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("words", [("hedaer:x",), ("none", "pii")])
def test_invalid_redaction_flags_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="--redact: "):
        policy_words(words, None)


def call(address: str, text: str) -> bytes:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}
    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message}}
    head = {"Content-Type": "application/json", "A2A-Version": "1.0", "X-Tenant": "acme-4711"}
    asked = urllib.request.Request(f"http://{address}/", json.dumps(body).encode(), head)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def test_a_capture_follows_the_policy(
    proxy: Callable[..., Proxy], agent: Agent, tmp_path: Path
) -> None:
    """What the policy names is in no file of the recording; the session remembers the policy;
    traffic is untouched."""
    record = tmp_path / "r.a2a.db"
    words = ("--redact", "$..text", "--redact", "header:x-tenant")
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", record, *words)
    (address,) = one.addresses()
    assert b"hello" in call(address, "the quick brown secret")
    assert one.stop() == 0
    assert "the data named by the policy are redacted" in one.err
    for file in tmp_path.glob("r.a2a.db*"):
        assert b"brown secret" not in file.read_bytes()
    with Recording(record) as recording:
        assert recording.read_sessions()[0].facts.redaction == ("header:x-tenant", "path:$..text")
        assert recording.read_sessions()[0].complete == "complete"
        request = next(recording.frames_after(0)).frame
        assert json.loads(request.payload)["params"]["message"]["parts"][0]["text"].startswith(
            "redacted-"
        )
        (exchange,) = (row.exchange for row in recording.read_exchanges())
        assert dict(exchange.request_headers)[b"X-Tenant"].startswith(b"redacted-")


def test_a_capture_without_payloads(
    proxy: Callable[..., Proxy], agent: Agent, tmp_path: Path
) -> None:
    """No payload text is kept, the capture is complete, and no rule reports the missing payloads as
    a fault."""
    record = tmp_path / "r.a2a.db"
    one = proxy(
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--record",
        record,
        "--redact",
        "metadata-only",
    )
    (address,) = one.addresses()
    call(address, "the quick brown secret")
    assert one.stop() == 0
    assert "rules that need payloads are skipped" in one.err
    with Recording(record) as recording:
        (session,) = recording.read_sessions()
        assert session.complete == "complete"
        frames = [row.frame for row in recording.frames_after(0)]
        assert [frame.payload for frame in frames] == [b""] * len(frames)
        assert all("payload" in frame.redacted for frame in frames if frame.size)
        assert sum(frame.size for frame in frames) > 100
        assert frames[1].message_id.startswith("a-")
        assert dict(next(recording.read_exchanges()).exchange.request_headers)[
            b"X-Tenant"
        ].startswith(b"redacted-")
        assert [
            each.rule for each in recheck_session(recording, session) if each.severity >= 2
        ] == []


def test_export_applies_a_policy_again(
    inspect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """To a copy; it says which; a second export changes nothing; import keeps labels; one secret
    has one label."""
    first, second = tmp_path / "1.a2a.jsonl", tmp_path / "2.a2a.jsonl"
    before = GRPC.read_bytes()
    assert inspect("export", GRPC, "--redact", "$..text", "-o", first)[0] == 0
    assert GRPC.read_bytes() == before
    assert inspect("export", first, "--redact", "$..text", "-o", second)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert inspect("export", SDK, "--redact", "$..text", "-o", tmp_path / "3.a2a.jsonl")[0] == 0
    with open_recording_or_cassette(first) as clean, open_recording_or_cassette(GRPC) as whole:
        assert clean.read_sessions()[0].facts.redaction == ("path:$..text",)
        assert clean.count_rows().frames == whole.count_rows().frames
        sizes = [(row.frame.size, row.frame.state, row.frame.at) for row in clean.frames_after(0)]
        assert sizes == [
            (row.frame.size, row.frame.state, row.frame.at) for row in whole.frames_after(0)
        ]
    assert label_of(first, '{"text":"') == label_of(tmp_path / "3.a2a.jsonl", '{"text":"')
    assert inspect("cassette", "fmt", "--check", first)[0] == 0


def label_of(path: Path, before: str) -> str:
    """The first label after this text."""
    return path.read_text().partition(before + "redacted-")[2][:12]


def test_export_of_a_part_and_trim_take_a_policy(
    inspect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """What is chosen is chosen in the original: a filter may name what goes."""
    words = ("-f", "op:GetTask", "--redact", "metadata-only")
    assert inspect("export", SDK, *words, "-o", tmp_path / "p.a2a.jsonl")[0] == 0
    with (
        open_recording_or_cassette(tmp_path / "p.a2a.jsonl") as part,
        open_recording_or_cassette(SDK) as whole,
    ):
        kept = [row.exchange.id for row in part.read_exchanges()]
        found = [row.exchange.id for row in whole.find_exchanges("op:GetTask")]
        card = next(
            row.exchange.id
            for row in whole.read_exchanges()
            if row.exchange.operation == "GetAgentCard"
        )
        assert kept == [card, *found]
        assert found
        assert not any(row.frame.payload for row in part.frames_after(0))
    assert (
        inspect("cassette", "trim", SDK, "4", "--redact", "pii", "-o", tmp_path / "t.a2a.jsonl")[0]
        == 0
    )
    with open_recording_or_cassette(tmp_path / "t.a2a.jsonl") as part:
        assert [row.exchange.id for row in part.read_exchanges()] == [1, 2, 3, 4]
        assert part.read_sessions()[0].facts.redaction == ("pii",)
    code, _, err = inspect("export", SDK, "--redact", "regex:(", "-o", tmp_path / "no.a2a.jsonl")
    assert (code, (tmp_path / "no.a2a.jsonl").exists()) == (2, False)
    assert "not a regular expression" in err


def test_commands_report_that_payloads_were_not_recorded(
    inspect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """`show`, `check`, the forms of a call, and replay, which is refused."""
    bare = tmp_path / "b.a2a.jsonl"
    assert inspect("export", SDK, "--redact", "metadata-only", "-o", bare)[0] == 0
    assert "payload not recorded" in inspect("show", bare, "3", "-p")[1]
    assert "payload not recorded" in inspect("show", bare, "3.0", "--raw")[1]
    code, _, err = inspect("show", bare, "3", "--as", "curl")
    assert (code, "its payloads were not recorded" in err) == (2, True)
    out = inspect("check", bare, "--fail-on", "never")[1]
    assert " rules not run: payloads were not recorded (metadata only)\n" in out
    with (
        open_recording_or_cassette(bare) as recording,
        pytest.raises(RecordingError, match="payloads were not recorded"),
    ):
        load_script(recording)


def test_scan_previews_what_a_policy_redacts(inspect: Callable[..., tuple[int, str, str]]) -> None:
    """Places, counts and masked excerpts; the default policy finds nothing in redacted recordings.
    The whole recording is read, so a filter is refused."""
    code, out, _ = inspect("export", GRPC, "--dry-run", "--redact", "$..text")
    assert code == 0
    assert "message.parts[*].text" in out or "message.parts.text" in out
    assert out.splitlines()[-1].startswith("policy: path:$..text; it would replace ")
    places = [int(line.split()[0]) for line in out.splitlines()[:-1]]
    assert f" in {sum(places)} places" in out.splitlines()[-1]
    assert sum(places) > 50
    assert inspect("export", GRPC, "--dry-run")[1] == "policy: default; it would change nothing\n"
    assert (
        "all payloads would be removed: 178 frames"
        in inspect("export", GRPC, "-n", "--redact", "metadata-only")[1]
    )
    code, _, err = inspect("export", GRPC, "--dry-run", "-f", "err")
    assert (code, "--dry-run reads the whole recording" in err) == (2, True)


def test_scan_names_places_and_exits_with_1(
    inspect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """For CI: 0 clean, 1 a secret, 2 no file; the secret itself is never printed."""
    path = tmp_path / "s.a2a.jsonl"
    path.write_bytes(SDK.read_bytes().replace(b'"unary"', b'"my password=hunter2-hunter2 is it"'))
    inspect("cassette", "fmt", path)
    code, out, _ = inspect("cassette", "scan", SDK, path)
    assert code == 1
    assert f"{SDK}: no secrets; 2 labels" in out
    assert (
        f"{path}: #3.0        $.params.message.parts[0].text  by its look  hun… (15 bytes)" in out
    )
    assert "hunter2" not in out
    code, out, _ = inspect("cassette", "scan", "--json", path)
    objects = [json.loads(line) for line in out.splitlines()]
    assert (code, objects[0]["kind"], objects[0]["place"], objects[-1]["kind"]) == (
        1,
        "secret",
        "#3.0",
        "summary",
    )
    assert "hunter2" not in out
    assert inspect("cassette", "scan", "--redact", "keep:regex:hunter2-.*", path)[0] == 0
    assert inspect("cassette", "scan", tmp_path / "none.a2a.jsonl")[0] == 2
