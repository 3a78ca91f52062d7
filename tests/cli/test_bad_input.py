"""Mistakes of the user: one error line, one hint line, exit code 2, nothing created, nothing
lost."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.recording.store.schema import SCHEMA_VERSION
from a2a_proxy.recording.write.writer import Writer
from support_cli import SECONDS, Ran, environment, program, run
from support_recording import facts
from support_relay import UNKNOWN

PAIR = ("--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:1")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def busy() -> Iterator[int]:
    """A port in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def two_lines(done: Ran, program: str, error: str) -> None:
    lines = done.err.splitlines()
    assert (done.code, done.out, len(lines)) == (2, "", 2), done.err
    assert lines[0].startswith(f"{program}: error: "), done.err
    assert error in lines[0], done.err
    assert lines[1].startswith(f"{program}: hint: ")
    assert not lines[0].endswith(".")


def nothing_made(state: Path, place: Path, before: dict[Path, bytes]) -> None:
    """No recording and no journal; existing files are unchanged."""
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    for name in ("journals", "recordings"):
        assert not list((state / name).glob("*"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--listen", ":0"), "--upstream is missing"),
        (("--upstream", "localhost:1"), "--listen is missing"),
        ((*PAIR, "--listen", ":0"), "2 --listen but 1 --upstream"),
        ((*PAIR, "--webhooks", "9100"), "--webhooks: cannot listen on '9100': no port"),
        (("--forward", ":0", "--webhooks", ":0"), "--webhooks has no effect without --listen"),
        ((*PAIR, "--webhook-url", "http://p"), "--webhook-url has no effect without --webhooks"),
        ((*PAIR, "--restore"), "--restore has no effect without --webhooks"),
        (
            (*PAIR, "--webhooks", ":0", "--webhook-url", "p:9100"),
            "--webhook-url p:9100 is no http:// or https:// URL",
        ),
        (
            (*PAIR, "--webhooks", ":0", "--webhook-url", "http://0.0.0.0:1"),
            "no agent can connect to --webhook-url http://0.0.0.0:1",
        ),
        (
            (*PAIR, "--webhooks", ":0", "--webhook-url", "http://p/a/%2e%2e/b"),
            "--webhook-url http://p/a/%2e%2e/b has . or .. or invalid encodings in its path",
        ),
        (
            (
                "-l",
                ":0",
                "-u",
                "agent.test:1",
                "--webhooks",
                ":0",
                "--upstream-proxy",
                "http://proxy:3128",
            ),
            "--webhooks with --upstream-proxy needs --webhook-url",
        ),
        (
            ("--listen", "127.0.0.1:9100", "--upstream", "a:1", "--webhooks", "127.0.0.1:9100"),
            "--listen 127.0.0.1:9100 and --webhooks 127.0.0.1:9100 are the same port",
        ),
        ((*PAIR, "--name", "desk", "--name", "clerk"), "1 --listen but 2 --name"),
        ((*PAIR, "--name", "de\nsk"), "--name de\u240ask is not a name"),
        ((*PAIR, "--name", "d" * 101), "--name dddddddddddddddddddd\u2026 is not a name"),
        (
            (*PAIR, "--upstream-grpc", "localhost:1", "--upstream-grpc", "localhost:2"),
            "1 --listen but 2 --upstream-grpc",
        ),
        ((*PAIR, "--rewrite-card", "sometimes"), "'sometimes' is not one of"),
        (
            (*PAIR, "--learn-ports", "8001,http"),
            "--learn-ports: 'http' is not a port or a range of ports",
        ),
        ((*PAIR, "--learn-ports", "all"), "--learn-ports: 'all' is not a port or a range of ports"),
        (
            (*PAIR, "--learn-ports", "9010-9000"),
            "--learn-ports: '9010-9000' is not a port or a range of ports",
        ),
        (
            (
                "--listen",
                ":0",
                "--upstream",
                "https://localhost:1",
                "--upstream-ca",
                "/no/such/ca.pem",
            ),
            "cannot read CA certificates from /no/such/ca.pem: no such file",
        ),
        (("--listen", ":0", "--upstream", "ftp://localhost:1"), "ftp"),
        (("--listen", ":99999", "--upstream", "localhost:1"), "99999"),
        (("--listen", "nonsense", "--upstream", "localhost:1"), "nonsense"),
        (
            ("--listen", "203.0.113.7:0", "--upstream", "localhost:1"),
            "cannot listen on 203.0.113.7:0",
        ),
        (("--listen", ":0", "--upstream", f"{UNKNOWN}:1"), f"cannot resolve upstream {UNKNOWN}:1"),
        (("--nonsense",), "no such option"),
        (("nonsense",), "no such command"),
        (("help", "webhooks"), "no such command 'help'. The manual: a2a-inspect help webhooks"),
        ((*PAIR, "--log-format", "xml"), "'xml' is not one of"),
        (("demo", "--nonsense"), "no such option"),
        (("--quiet",), "--listen is missing"),
        (("--record", "foo.db", "--quiet", "demo"), "--record and --quiet before demo: no effect"),
        ((*PAIR, "demo"), "--listen and --upstream before demo: no effect"),
        (
            ("-l", ":9", "-u", "localhost:1", "-l", ":9", "-u", "localhost:2"),
            "--listen :9 is given twice",
        ),
        (
            ("-l", ":9", "-u", "localhost:1", "-l", "127.0.0.1:9", "-u", "localhost:2"),
            "--listen :9 and --listen 127.0.0.1:9 are the same port",
        ),
        (("--forward", "nonsense"), "--forward: cannot listen on 'nonsense': no port"),
        (("--forward", "203.0.113.7:0"), "--forward: cannot listen on 203.0.113.7:0"),
        (("--forward", ":9", "--forward", ":9"), "--forward :9 is given twice"),
        (
            ("-l", ":9", "-u", "localhost:1", "--forward", "127.0.0.1:9"),
            "--listen :9 and --forward 127.0.0.1:9 are the same port",
        ),
        (("--forward", ":0", "--upstream", "localhost:1"), "--listen is missing"),
        ((*PAIR, "--intercept", "private"), "--intercept has no effect without --forward"),
        ((*PAIR, "--pass", "a"), "--pass has no effect without --forward"),
        (("--forward", ":0", "--pass", "a"), "--pass has no effect without --intercept"),
        (
            ("--forward", ":0", "--intercept", "a b"),
            "--intercept: 'a b' is not a pattern for hosts",
        ),
        (
            ("--forward", ":0", "--intercept", "*", "--pass", "/"),
            "--pass: '/' is not a pattern for hosts",
        ),
        (
            ("--forward", ":0", "--upstream-proxy", "socks5://a:1"),
            "socks5:// proxies are not supported",
        ),
    ],
)
def test_invalid_flags_and_addresses(
    tmp_path: Path, place: Path, words: tuple[str, ...], error: str
) -> None:
    """Flags and addresses."""
    two_lines(run(tmp_path / "state", "a2a-proxy", *words), "a2a-proxy", error)
    nothing_made(tmp_path / "state", place, {})


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            (*PAIR, "--webhooks", "203.0.113.7:9200"),
            (
                "to listen on this machine only: --webhooks :9200; "
                "the URL for agents: --webhook-url http://203.0.113.7:9200"
            ),
        ),
        (
            (*PAIR, "--webhooks", "http://proxy.example:9200/hooks"),
            (
                "write the port only, and the URL for agents: "
                "--webhooks :9100 --webhook-url https://proxy.example"
            ),
        ),
        ((*PAIR, "--webhooks", "9200"), "write --webhooks :9200"),
        (
            ("--listen", "203.0.113.7:9200", "--upstream", "localhost:1"),
            "to listen on this machine only: --listen :9200",
        ),
        (("--forward", "203.0.113.7:9200"), "to listen on this machine only: --forward :9200"),
        (
            (*PAIR, "--metrics", "203.0.113.7:9200"),
            "to listen on this machine only: --metrics :9200",
        ),
    ],
)
def test_hints_name_the_option_and_its_port(
    tmp_path: Path, words: tuple[str, ...], hint: str
) -> None:
    done = run(tmp_path / "state", "a2a-proxy", *words)
    assert done.err.splitlines()[1:] == [f"a2a-proxy: hint: {hint}"], done.err


def test_invalid_environment_variables_are_refused(tmp_path: Path, place: Path) -> None:
    """`A2A_PROXY_LEARN_PORTS` is read as the option is."""
    done = run(tmp_path / "state", "a2a-proxy", *PAIR, A2A_PROXY_LEARN_PORTS="80-")
    two_lines(done, "a2a-proxy", "--learn-ports: '80-' is not a port or a range of ports")
    nothing_made(tmp_path / "state", place, {})


def test_a_busy_port_is_an_error(tmp_path: Path, place: Path, busy: int) -> None:
    """Also the second of two listeners: the first one is closed again."""
    for words in (
        ("--listen", f"127.0.0.1:{busy}", "--upstream", "127.0.0.1:1"),
        (*PAIR, "-l", f"127.0.0.1:{busy}", "-u", "127.0.0.1:1"),
    ):
        done = run(tmp_path / "state", "a2a-proxy", *words, "--record", place / "r.db")
        two_lines(done, "a2a-proxy", f"port {busy} is in use")
        nothing_made(tmp_path / "state", place, {})
        assert not (tmp_path / "state").exists()


def test_a_proxy_cannot_be_its_own_upstream(tmp_path: Path, place: Path) -> None:
    """By itself, by a name, by its gRPC upstream, or through another listener; nothing is made."""
    with kept_port() as first, kept_port() as second:
        for words in (
            ("-l", f":{first}", "-u", f"localhost:{first}"),
            (
                "-l",
                f"127.0.0.1:{first}",
                "-u",
                "127.0.0.1:1",
                "--upstream-grpc",
                f"localhost:{first}",
            ),
            (
                "-l",
                f":{first}",
                "-u",
                f"127.0.0.1:{second}",
                "-l",
                f":{second}",
                "-u",
                f"127.0.0.1:{first}",
            ),
        ):
            done = run(tmp_path / "state", "a2a-proxy", *words, "--record", place / "r.db")
            two_lines(done, "a2a-proxy", "leads back to the proxy itself")
            assert done.err.splitlines()[1].endswith(
                "hint: --upstream must name the agent's port, not the proxy's"
            )
            assert not (tmp_path / "state").exists()
            assert not list(place.iterdir())


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """A port that no system call gives to anybody, and that who names it can listen on:
    SO_REUSEADDR lets it share the port with a socket that does not listen."""
    with socket.socket() as holds:
        holds.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holds.bind(("127.0.0.1", 0))
        yield int(holds.getsockname()[1])


def test_unwritable_recordings_are_refused(tmp_path: Path, place: Path) -> None:
    """Foreign files, folders, places that are not there."""
    (place / "text").write_text("my diary")
    (place / "empty").touch()
    with sqlite3.connect(place / "other.db") as db:
        db.execute("CREATE TABLE t (x)")
    cases = {
        "text": "is not a recording",
        "empty": "is empty",
        "other.db": "is a database of another program",
        "no/such/r.db": "does not exist",
        "text/r.db": "is not a folder",
        ".": "is not a file",
    }
    before = {path: path.read_bytes() for path in place.iterdir()}
    for name, error in cases.items():
        two_lines(
            run(tmp_path / "state", "a2a-proxy", *PAIR, "--record", place / name),
            "a2a-proxy",
            error,
        )
        nothing_made(tmp_path / "state", place, before)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_permission_is_an_error(tmp_path: Path, place: Path) -> None:
    """A folder that is not ours."""
    place.chmod(0o500)
    two_lines(
        run(tmp_path / "state", "a2a-proxy", *PAIR, "--record", place / "r.db"),
        "a2a-proxy",
        "permission",
    )
    two_lines(run(place / "state", "a2a-proxy", *PAIR), "a2a-proxy", "permission denied")


def test_a_recording_of_a_newer_version_is_refused(tmp_path: Path, place: Path) -> None:
    """It is not touched, by either program."""
    writer = Writer(place / "r.db", facts())
    writer.open()
    writer.finish(facts().started)
    with sqlite3.connect(place / "r.db") as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = {path: path.read_bytes() for path in place.iterdir()}
    done = run(tmp_path / "state", "a2a-proxy", *PAIR, "--record", place / "r.db")
    two_lines(done, "a2a-proxy", "was written by a newer a2a-proxy")
    nothing_made(tmp_path / "state", place, before)
    two_lines(run(tmp_path / "state", "a2a-inspect", "ls", place / "r.db"), "a2a-inspect", "newer")


def test_a_state_directory_that_cannot_be_created_is_refused(tmp_path: Path, place: Path) -> None:
    """A file has its name."""
    (place / "file").write_text("x")
    for state in (place / "file", place / "file" / "below"):
        two_lines(run(state, "a2a-proxy", *PAIR), "a2a-proxy", "the state directory cannot be used")
        two_lines(
            run(state, "a2a-inspect", "ls"), "a2a-inspect", "the state directory cannot be used"
        )
        two_lines(
            run(state, "a2a-inspect", "recover"),
            "a2a-inspect",
            "the state directory cannot be used",
        )
    assert [path.name for path in place.iterdir()] == ["file"]


def test_a_damaged_redaction_key_is_refused(tmp_path: Path, place: Path) -> None:
    """Without a key no secret can be labelled, so nothing is recorded."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "redaction.key").write_bytes(b"short")
    done = run(tmp_path / "state", "a2a-proxy", *PAIR, "--record", place / "r.db")
    two_lines(done, "a2a-proxy", "no key to label secrets with")
    nothing_made(tmp_path / "state", place, {})


@pytest.mark.parametrize(
    "words", [("a2a-inspect", "rules"), ("a2a-inspect", "rules", "RPC-002"), ("a2a-proxy", "-h")]
)
def test_a_full_output_is_one_error_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Long or short: an error line and a hint, no traceback."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [program(words[0]), *words[1:]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
            timeout=SECONDS,
            check=False,
        )
    error, hint = done.stderr.splitlines()
    assert done.returncode == 2
    assert error == f"{words[0]}: error: cannot write the output: no space left on device"
    assert hint.startswith(f"{words[0]}: hint: ")


@pytest.mark.parametrize("words", [("rules",), ("rules", "RPC-002")])
def test_a_closed_pipe_is_success(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Long or short: that is success."""
    reader, writer = os.pipe()
    os.close(reader)
    line = [program("a2a-inspect"), *words]
    env = environment(tmp_path)
    done = subprocess.run(
        line, stdout=writer, stderr=subprocess.PIPE, env=env, timeout=SECONDS, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
