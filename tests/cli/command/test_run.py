"""`a2a-proxy run`: streams, exit codes, signals, and the lines about what passed and what did
not."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from a2a_proxy.installation import install_command
from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, Ran, agent, environment, program, run, until

_CALL = """
import json, os, sys, urllib.request

message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
request = urllib.request.Request(sys.argv[1], json.dumps(body).encode(), headers)
if "past" in sys.argv:
    urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
answer = urllib.request.urlopen(request)
if "past" not in sys.argv:  # the connection past the proxy stays open until it is seen
    answer.read()  # else the end of the process resets the connection
print(answer.status, flush=True)
sys.stdin.read()
"""


def run_command(tmp_path: Path, *words: object, **environ: str) -> Ran:
    return run(tmp_path / "state", "a2a-proxy", "run", *words, **environ)


@pytest.fixture
def planner(tmp_path: Path) -> list[str]:
    """A command that calls the agent of its argument, and waits for the end of stdin."""
    script = tmp_path / "planner.py"
    script.write_text(_CALL)
    return [sys.executable, str(script)]


def test_a_call_of_the_command_is_recorded_with_its_process(
    tmp_path: Path, planner: list[str]
) -> None:
    """Stdout belongs to the command; everything of the proxy is on stderr."""
    recording = tmp_path / "r.a2a.db"
    with agent() as far:
        ran = run_command(
            tmp_path, "--record", recording, "--", *planner, f"http://{far.upstream}/"
        )
    assert (ran.code, ran.out) == (0, "200\n")
    assert "recorded 1 exchange (1 ok)" in ran.err
    assert "past the proxy" not in ran.err
    with Recording(recording) as stored:
        (connection,) = (row.connection for row in stored.read_connections())
        (exchange,) = (row.exchange for row in stored.read_exchanges())
    assert (connection.upstream, exchange.operation) == (far.upstream, "SendMessage")
    assert connection.client_process is not None
    assert (connection.client_process.name, connection.client_process.ports) == ("planner", ())


def test_calls_past_the_proxy_are_reported(tmp_path: Path, planner: list[str]) -> None:
    """With the reason where it is known, and that nothing has passed."""
    command = [program("a2a-proxy"), "run", "--", *planner]
    with (
        agent() as far,
        subprocess.Popen(
            [*command, f"http://{far.upstream}/", "past"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "err").open("wb"),
            env=environment(tmp_path / "state"),
        ) as process,
    ):
        assert process.stdin is not None
        until(lambda: "past the proxy: " in (tmp_path / "err").read_text())
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        err = (tmp_path / "err").read_text()
        reason = "plain sockets, and aiohttp without trust_env=True, ignore proxy variables"
        assert f") to {far.upstream}: {reason}\n" in err
        assert "warning: past the proxy: planner (pid " in err
        assert "warning: nothing passed through the proxy" in err


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", -15),
        ("kill -KILL $$", -9),
        ("kill -9 $PPID; exec sleep 60", -9),
        ("kill -9 $(ps -o ppid= -p $PPID); sleep 60", -9),
    ],
    ids=["0", "3", "SIGTERM", "SIGKILL", "SIGKILL for the guard", "SIGKILL for the proxy"],
)
def test_the_end_is_that_of_the_command(tmp_path: Path, script: str, code: int) -> None:
    """A command that kills the proxy, or the guard, dies with it."""
    ran = run_command(tmp_path, "--", "sh", "-c", f"echo out; echo err >&2; {script}")
    assert (ran.code, ran.out) == (code, "out\n")
    assert "err\n" in ran.err


def test_streams_arguments_and_environment_are_those_of_the_proxy(tmp_path: Path) -> None:
    script = (
        'read line; echo "$line $0 $1 $MINE"; test -n "$HTTP_PROXY" && test -z "$NO_PROXY"; pwd'
    )
    done = subprocess.run(
        [program("a2a-proxy"), "run", "sh", "-c", script, "zero", "--record"],
        input="typed\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tmp_path,
        env=environment(tmp_path / "state", MINE="own", NO_PROXY="localhost"),
        check=True,
    )
    assert done.stdout == f"typed zero --record own\n{tmp_path}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """Once; the proxy ends when the command does, with its exit code."""
    script = (
        f"trap 'echo caught; exit 5' {number.name.removeprefix('SIG')}; "
        "echo ready; while :; do sleep 0.05; done"
    )
    with subprocess.Popen(
        [program("a2a-proxy"), "run", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path / "state"),
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert (process.stdout.read(), process.wait(SECONDS)) == ("caught\n", 5)


def test_a_signal_before_the_command_starts_ends_the_proxy(tmp_path: Path) -> None:
    with subprocess.Popen(
        [program("a2a-proxy"), "run", "--", "touch", str(tmp_path / "ran")],
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path / "state"),
    ) as process:
        until(lambda: _blocks_signals(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == -signal.SIGTERM
    assert not (tmp_path / "ran").exists()


def _blocks_signals(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("SigBlk:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1 == 1


@pytest.mark.parametrize(
    ("name", "text", "code", "message", "hint"),
    [
        ("nowhere", None, 127, "command not found", "PATH"),
        ("plain.txt", "hello", 126, "permission denied", "chmod +x"),
        ("old", "#!/no/such/interpreter\n", 126, "its interpreter is missing", "head -1"),
        ("text", "echo hello\n", 126, "exec format error", "is it a program?"),
    ],
)
def test_a_command_that_cannot_run_exits_as_a_shell_would(
    tmp_path: Path, name: str, text: str | None, code: int, message: str, hint: str
) -> None:
    """Stdout stays empty, and no recording is left."""
    command = tmp_path / name
    if text is not None:
        command.write_text(text)
        command.chmod(0o644 if name == "plain.txt" else 0o755)
    ran = run_command(tmp_path, "--", command)
    assert (ran.code, ran.out) == (code, "")
    *_, error, how = ran.err.splitlines()
    assert error.startswith("a2a-proxy: error: ")
    assert message in error
    assert hint in how
    assert not list((tmp_path / "state").rglob("*.a2a.db"))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ([], "the command is missing", "a2a-proxy run -- python system.py"),
        (["--journal-max", "much", "--", "true"], "'much' is not a size", "--journal-max 4GiB"),
        (["--record", "/nowhere/r.db", "--", "true"], "/nowhere", "mkdir -p /nowhere"),
        (["--listen", ":9000", "--", "true"], "no such option", "a2a-proxy run --help"),
    ],
)
def test_invalid_use_is_refused(tmp_path: Path, words: list[str], message: str, hint: str) -> None:
    """The command does not run."""
    ran = run_command(tmp_path, *words, *(["touch", tmp_path / "ran"] if words else []))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert hint in ran.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("exit_code", "severity", "code"), [(0, "warning", 1), (0, "never", 0), (3, "warning", 3)]
)
def test_fail_on_applies_only_if_the_command_exits_with_0(
    tmp_path: Path, exit_code: int, severity: str, code: int
) -> None:
    """Curl asks for a task that does not exist: the agent's error breaks a rule."""
    script = tmp_path / "ask.py"
    script.write_text(
        _CALL.replace('"SendMessage"', '"GetTask"').replace(
            "sys.stdin.read()", f"sys.exit({exit_code})"
        )
    )
    with agent() as far:
        url = f"http://{far.upstream}/"
        ran = run_command(tmp_path, "--fail-on", severity, "--", sys.executable, script, url)
    assert ran.code == code, ran.err


@pytest.mark.parametrize(
    ("proxy", "line"),
    [
        (
            "http://me:secret@127.0.0.1:9",
            "agents on other machines are reached through HTTP_PROXY=http://127.0.0.1:9\n",
        ),
        (
            "socks5://me:secret@127.0.0.1:9",
            "HTTP_PROXY=socks5://127.0.0.1:9 is not used, and agents are reached directly",
        ),
    ],
)
def test_a_proxy_of_the_environment_is_named(tmp_path: Path, proxy: str, line: str) -> None:
    ran = run_command(tmp_path, "--", "true", HTTP_PROXY=proxy)
    assert line in ran.err
    assert "secret" not in ran.err


def test_processes_that_remain_are_named(tmp_path: Path) -> None:
    """An orphan stays a descendant of the proxy, also after the guard's end. Until it runs `sleep`
    it has the shell's name."""
    wait = "until ps -o comm= -p $! | grep -q sleep; do :; done"
    ran = run_command(tmp_path, "--", "sh", "-c", f"(sleep 60 >/dev/null 2>&1 & {wait}; echo $!)")
    os.kill(int(ran.out), signal.SIGKILL)
    assert ran.code == 0
    assert f"the command has ended, and sleep (pid {int(ran.out)}) still run" in ran.err


_MASKS = """
grep SigBlk /proc/self/status
proxy=$(ps -o ppid= -p $PPID | tr -d ' ')
for try in $(seq 400); do
  for pid in $(cat /proc/$proxy/task/*/children); do
    [ $pid = $PPID ] && continue
    tr '\\0' ' ' </proc/$pid/cmdline
    grep SigBlk /proc/$pid/status
  done >masks
  grep -q a2a_proxy.recorder masks && grep -q a2a_proxy.follower masks &&
    ! grep -qv 0000000000000000 masks && break
  sleep 0.05
done
cat masks
"""
"""Prints the mask of the command, and those of the proxy's children, except for the guard, once
they have unblocked their signals, or after 20 s. A shell blocks its own signals for a moment
whenever it starts a program."""


def test_no_process_inherits_the_signal_mask_of_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy blocks signals, because it waits for them; the command, the recorder and a hook do
    not."""
    hook = (
        "from a2a_proxy.hooks import Hook\n\n\n"
        "class Own(Hook):\n    def on_frame(self, frame):\n        pass\n"
    )
    (tmp_path / "own_hook.py").write_text(hook)
    monkeypatch.chdir(tmp_path)
    words = ("--hook", "own_hook:Own", "--", "sh", "-c", _MASKS)
    ran = run_command(tmp_path, *words, PYTHONPATH=str(tmp_path))
    assert {line.split()[-1] for line in ran.out.splitlines()} == {"0" * 16}, ran.out
    assert ["a2a_proxy.recorder" in ran.out, "a2a_proxy.follower" in ran.out] == [True, True]


_WITHOUT_CRYPTOGRAPHY = """
import importlib.util

find_spec = importlib.util.find_spec
importlib.util.find_spec = (
    lambda name, *rest: None if name == "cryptography" else find_spec(name, *rest)
)
"""


@pytest.fixture
def https_agent(tmp_path: Path) -> Iterator[str]:
    """The URL of an agent with a certificate of an authority that `tmp_path / "own.pem"` names."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with agent() as far:
        far.server.socket = context.wrap_socket(far.server.socket, server_side=True)
        yield f"https://{far.upstream}/"


@pytest.mark.parametrize(
    ("words", "calls", "line"),
    [
        ([], 1, "TLS to this machine and private networks is opened"),
        (["--pass", "127.0.0.1"], 0, "recorded 0 exchanges"),
        (["--intercept", "*.example.com"], 0, "passes unread"),
    ],
)
def test_tls_on_this_machine_is_opened(
    tmp_path: Path, planner: list[str], https_agent: str, words: list[str], calls: int, line: str
) -> None:
    """The command trusts what it trusted before, and the proxy; the proxy verifies the agent."""
    recording = tmp_path / "r.a2a.db"
    trusted = {"SSL_CERT_FILE": str(tmp_path / "own.pem")}
    ran = run_command(
        tmp_path, "--record", recording, *words, "--", *planner, https_agent, **trusted
    )
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    assert line in ran.err
    with Recording(recording) as stored:
        found = [row.exchange.operation for row in stored.read_exchanges()]
        processes = [row.connection.client_process for row in stored.read_connections()]
    assert found == ["SendMessage"] * calls
    assert [process.name for process in processes if process is not None] == ["planner"]


def test_a_folder_of_authorities_is_trusted(
    tmp_path: Path, planner: list[str], https_agent: str
) -> None:
    """By the command and by the proxy, as requests reads it."""
    folder = tmp_path / "certs"
    folder.mkdir()
    openssl = ["openssl", "x509", "-noout", "-hash", "-in", str(tmp_path / "own.pem")]
    index = subprocess.run(openssl, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "own.pem").rename(folder / f"{index}.0")
    planner[1:1] = ["-c", _AS_REQUESTS]
    ran = run_command(tmp_path, "--", *planner, https_agent, REQUESTS_CA_BUNDLE=str(folder))
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    assert "recorded 1 exchange (1 ok)" in ran.err


_AS_REQUESTS = """
import os, sys

sys.argv.pop(0)
os.environ["SSL_CERT_FILE"] = os.environ["REQUESTS_CA_BUNDLE"]
exec(open(sys.argv[0]).read())
"""
"""Runs a script whose `ssl` trusts what requests trusts."""


def test_a_missing_file_of_authorities_does_not_stop_the_command(tmp_path: Path) -> None:
    """It would have run without the proxy; a line names the variable, which stays."""
    missing = str(tmp_path / "missing.pem")
    ran = run_command(tmp_path, "--", "sh", "-c", 'echo "$CURL_CA_BUNDLE"', CURL_CA_BUNDLE=missing)
    assert (ran.code, ran.out) == (0, f"{missing}\n"), ran.err
    assert (
        f"CURL_CA_BUNDLE names {missing}, which cannot be read: no such file or directory"
        in ran.err
    )
    assert "hint: correct it: unset CURL_CA_BUNDLE" in ran.err


def test_without_the_extra_plain_traffic_is_recorded(tmp_path: Path, planner: list[str]) -> None:
    """And a line says how TLS is read."""
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT_CRYPTOGRAPHY)
    with agent() as far:
        ran = run_command(
            tmp_path, "--", *planner, f"http://{far.upstream}/", PYTHONPATH=str(tmp_path)
        )
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    assert "recorded 1 exchange (1 ok)" in ran.err
    assert f"TLS passes unread; to read it: {install_command('tls')}\n" in ran.err


@pytest.mark.parametrize("variable", ["NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"])
def test_agents_are_verified_with_what_the_command_trusts(
    tmp_path: Path, https_agent: str, variable: str
) -> None:
    """Also if only one kind of programs trusts their authority, as without the proxy."""
    script = tmp_path / "planner.py"
    own = (
        "urlopen(request, context=__import__('ssl')"
        f".create_default_context(cafile=os.environ[{variable!r}]))"
    )
    script.write_text(_CALL.replace("urlopen(request)", own))
    ran = run_command(
        tmp_path, "--", sys.executable, script, https_agent, **{variable: str(tmp_path / "own.pem")}
    )
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    assert "recorded 1 exchange (1 ok)" in ran.err
