"""Commands, run as a user runs them, and a plain agent for them to call."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

from a2a_inspect.cli.main import cli
from a2a_proxy.cli.main import run_cli
from support_process import state_of

SECONDS = 120.0
"""Seconds after which a hanging command has failed, also on a slow machine."""


def environment(state: Path, **more: str) -> dict[str, str]:
    """Return the environment without the settings of the user who runs the tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("A2A_PROXY_")}
    return {**own, "A2A_PROXY_STATE": str(state), **more}


def program(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


class Ran:
    """The output and the exit code of a finished command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.lines = self.out.splitlines()


def run(state: Path, name: str, *words: object, **environ: str) -> Ran:
    """Run a command until it ends."""
    line = [program(name), *map(str, words)]
    env = environment(state, **environ)
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=SECONDS, env=env, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_here(state: Path, *words: object, **environ: str) -> Ran:
    """Run `a2a-inspect` in this process and return the same as `run`, for tests of its output."""
    data = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(each, "utf-8", write_through=True) for each in data)
    with (
        patch.dict(os.environ, environment(state, **environ), clear=True),
        patch.object(sys, "argv", ["a2a-inspect", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        time.tzset()
        code = run_cli("a2a-inspect", cli)
    time.tzset()
    return Ran(code, *(each.getvalue().decode() for each in data))


def until(what: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Return the first value of `what()` that is true."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def recorder_of(relay: int) -> int:
    """Return the process id of the recorder of a running relay, or 0 if there is none. Any process
    may end meanwhile."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{relay}/task").iterdir():
            with contextlib.suppress(OSError):
                for word in (task / "children").read_text().split():
                    if is_recorder(int(word)):
                        return int(word)
    return 0


def is_recorder(process: int) -> bool:
    """Return whether a process is a running recorder, and not a child that starts, an agent, a hook
    or a zombie."""
    try:
        return b"a2a_proxy.recorder" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def until_dead(process: int) -> None:
    """Wait until a process that is no child of this one has ended: SIGKILL takes effect
    asynchronously."""

    def dead() -> bool:
        try:
            return state_of(process) in "ZX"
        except OSError:
            return True

    until(dead)


class Proxy:
    """A running `a2a-proxy`. stdout and stderr go to files unless the test passes a descriptor;
    `before` precedes the command line."""

    def __init__(
        self,
        folder: Path,
        *words: object,
        stdout: int | None = None,
        before: Sequence[str] = (),
        **environ: str,
    ) -> None:
        self.folder, self.state = folder, Path(environ.get("A2A_PROXY_STATE") or folder / "state")
        self.out_file, self.err_file = folder / "stdout", folder / "stderr"
        with self.out_file.open("wb") as out, self.err_file.open("wb") as err:
            self.process = subprocess.Popen(
                [*before, program("a2a-proxy"), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                env={**environment(self.state), **environ},
            )

    @property
    def out(self) -> str:
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        return self.err_file.read_text()

    @property
    def journals(self) -> list[Path]:
        return list((self.state / "journals").iterdir())

    def addresses(self) -> list[str]:
        """Return the addresses in the banner, on which the proxy listens."""
        until(lambda: "stop with" in self.err or '"start"' in self.out)
        if '"start"' in self.out:
            return [route["listen"][0] for route in json.loads(self.out.splitlines()[0])["routes"]]
        return [
            line.split(" listens on ")[1].split()[0]
            for line in self.err.splitlines()
            if " listens on " in line
        ]

    def recorder(self) -> int:
        """Return the process id of its recorder, when there is one."""
        return int(until(lambda: recorder_of(self.process.pid)))

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        return self.process.wait(SECONDS)

    def stop(self) -> int:
        self.interrupt()
        return self.wait()


_number = itertools.count(1)
"""A counter for ids that are used once."""
_INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "TASK_NOT_FOUND",
    "domain": "a2a-protocol.org",
}


class Agent:
    """An agent that answers JSON-RPC correctly; a stream sends one event, then waits for
    `go_on`."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                agent.answer(self, call)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def upstream(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, to: BaseHTTPRequestHandler, call: dict[str, Any]) -> None:
        if call["method"] == "SendStreamingMessage":
            to.send_response(200)
            to.send_header("Content-Type", "text/event-stream")
            to.send_header("Cache-Control", "no-store")
            to.send_header("Connection", "close")
            to.end_headers()
            name = f"task-{next(_number)}"
            for state in ("SUBMITTED", "COMPLETED"):
                task = {
                    "task": {
                        "id": name,
                        "contextId": "ctx",
                        "status": {"state": f"TASK_STATE_{state}"},
                    }
                }
                body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": task})
                with contextlib.suppress(OSError):
                    to.wfile.write(f"data: {body}\n\n".encode())
                self.go_on.wait(SECONDS)
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if call["method"] == "GetTask":
            reply["error"] = {
                "code": -32001,
                "message": "no \x1b[31msuch\x07 task",
                "data": [_INFO],
            }
        else:
            parts = [{"text": "hello \x1b]0;owned\x07 there"}]
            said = {
                "messageId": f"a-{next(_number)}",
                "contextId": "ctx",
                "role": "ROLE_AGENT",
                "parts": parts,
            }
            reply["result"] = {"message": said}
        data = json.dumps(reply).encode()
        to.send_response(200)
        to.send_header("Content-Type", "application/json")
        to.send_header("Content-Length", str(len(data)))
        to.end_headers()
        to.wfile.write(data)

    def close(self) -> None:
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


def call(address: str, method: str = "SendMessage", **headers: str) -> Any:
    """Send one JSON-RPC call and return its decoded answer, or the open response of a stream."""
    message = {"messageId": f"m-{next(_number)}", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    params = {"id": "task-9"} if method == "GetTask" else {"message": message}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    accept = "text/event-stream" if method == "SendStreamingMessage" else "*/*"
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0", "Accept": accept, **headers}
    response = urllib.request.urlopen(
        urllib.request.Request(f"http://{address}/", body, fields), timeout=SECONDS
    )
    if method == "SendStreamingMessage":
        return response
    with response:
        return json.load(response)


@contextlib.contextmanager
def agent() -> Iterator[Agent]:
    """Run an agent while the block runs."""
    one = Agent()
    try:
        yield one
    finally:
        one.close()
