"""Tracing backends, started on loopback and read through their own interfaces.

`tests/peers/setup.py --soak` installs them. Each takes seconds to start and hundreds of megabytes
of memory.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from support_peers import ENVIRONMENTS
from support_spans import Seen

START_SECONDS, READ_SECONDS = 300, 180


class Phoenix(msgspec.Struct):
    """A running Arize Phoenix. The resource attribute `openinference.project.name` selects the
    project."""

    http: str
    grpc: str

    def spans(self, project: str, count: int) -> list[Seen]:
        """Return the spans of a project in order of time, when it has that many. Phoenix returns no
        links."""
        found = _until(lambda: self._read(project), count)
        return sorted(
            (_of_phoenix(each) for each in found), key=lambda each: (each.started, each.span)
        )

    def _read(self, project: str) -> list[dict[str, Any]]:
        try:
            page: dict[str, Any] = _get(f"{self.http}/v1/projects/{project}/spans?limit=1000")
        except urllib.error.HTTPError as error:
            if error.code == 404:  # no span has arrived yet
                return []
            raise
        return list(page["data"])


@contextmanager
def phoenix(folder: Path) -> Iterator[Phoenix]:
    """Run Phoenix. Its gRPC port listens on every interface despite PHOENIX_HOST (20.26: fixed in
    its `grpc_server.py`)."""
    http, grpc = _free_ports(2)
    env = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(http),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    address = f"http://127.0.0.1:{http}"
    with _running([_program("phoenix"), "serve"], env, folder, f"{address}/healthz"):
        yield Phoenix(address, f"http://127.0.0.1:{grpc}")


class Mlflow(msgspec.Struct):
    """A running MLflow server. A request header selects the experiment of the spans."""

    http: str

    def experiment(self, name: str) -> str:
        """Create an experiment and return its id."""
        asked = urllib.request.Request(
            f"{self.http}/api/2.0/mlflow/experiments/create",
            json.dumps({"name": name}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=READ_SECONDS) as answer:
            return str(json.load(answer)["experiment_id"])

    def take(self, experiment: str, request: bytes) -> None:
        """Send an OTLP request to it as JSON."""
        head = {"Content-Type": "application/json", "x-mlflow-experiment-id": experiment}
        asked = urllib.request.Request(f"{self.http}/v1/traces", request, head)
        with urllib.request.urlopen(asked, timeout=READ_SECONDS) as answer:
            assert answer.status == 200

    def spans(self, experiment: str, count: int) -> list[Seen]:
        """Return the spans of an experiment in order of time, when it has that many."""
        found = _until(lambda: self._read(experiment), count)
        return sorted(
            (_of_mlflow(each) for each in found), key=lambda each: (each.started, each.span)
        )

    def _read(self, experiment: str) -> list[dict[str, Any]]:
        """Read with MLflow's own client, which is installed only in MLflow's environment."""
        script = (
            "import json, mlflow, sys; mlflow.set_tracking_uri(sys.argv[1]);"
            "traces = mlflow.search_traces(locations=[sys.argv[2]], return_type='list');"
            "print(json.dumps([span.to_dict() for trace in traces for span in trace.data.spans]))"
        )
        line = [_program("python", "mlflow"), "-c", script, self.http, experiment]
        env = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=READ_SECONDS, env=env, check=True
        )
        return list(json.loads(done.stdout))


@contextmanager
def mlflow(folder: Path) -> Iterator[Mlflow]:
    """Run MLflow with one worker and its database in the folder."""
    (port,) = _free_ports(1)
    address = f"http://127.0.0.1:{port}"
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/m.db",
        "--default-artifact-root",
        str(folder / "artifacts"),
    ]
    line = [
        _program("mlflow"),
        "server",
        *store,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    with _running(line, {"MLFLOW_DISABLE_TELEMETRY": "true"}, folder, f"{address}/health"):
        yield Mlflow(address)


def _program(name: str, environment: str = "") -> str:
    return str(ENVIRONMENTS / (environment or name) / "bin" / name)


@contextmanager
def _running(line: list[str], env: dict[str, str], folder: Path, ready: str) -> Iterator[None]:
    """Run a server until the block ends, then end it and its child processes."""
    log = folder / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, **env},
            start_new_session=True,
        )
    try:
        _wait(process, ready, log)
        yield
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(ready, timeout=5):
            return
        time.sleep(0.2)
    raise RuntimeError(
        f"{process.args!r} does not answer at {ready}: {log.read_text(errors='replace')[-2000:]}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group, because a server may have workers."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def _free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=READ_SECONDS) as answer:
        return json.load(answer)


def _until(read: Callable[[], list[dict[str, Any]]], count: int) -> list[dict[str, Any]]:
    """Read until the condition is true, and return the spans: backends store accepted spans with a
    delay."""
    deadline = time.monotonic() + READ_SECONDS
    while len(found := read()) < count and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _of_phoenix(span: dict[str, Any]) -> Seen:
    return Seen(
        name=span["name"],
        trace=span["context"]["trace_id"],
        span=span["context"]["span_id"],
        parent=span["parent_id"] or "",
        started=_ns(span["start_time"]),
        ended=_ns(span["end_time"]),
        attributes=span["attributes"],
        events=tuple((each["name"], _ns(each["timestamp"])) for each in span["events"]),
        error=span["status_code"] == "ERROR",
    )


def _of_mlflow(span: dict[str, Any]) -> Seen:
    """Decode MLflow's span ids, which are in base64, and its values, which are in JSON."""
    links = (
        (each["trace_id"].removeprefix("tr-"), each["span_id"], each["attributes"])
        for each in span["links"]
    )
    return Seen(
        name=span["name"],
        trace=_hex(span["trace_id"]),
        span=_hex(span["span_id"]),
        parent=_hex(span["parent_span_id"] or ""),
        started=span["start_time_unix_nano"],
        ended=span["end_time_unix_nano"],
        attributes={name: json.loads(value) for name, value in span["attributes"].items()},
        events=tuple((each["name"], each["time_unix_nano"]) for each in span["events"]),
        links=tuple(
            (trace, linked, told.get("a2a_proxy.link", "")) for trace, linked, told in links
        ),
        error=span["status"]["code"] == "STATUS_CODE_ERROR",
    )


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


def _ns(text: str) -> int:
    """Return an ISO time in ns. The arithmetic is exact, because a float cannot hold the
    microseconds."""
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since // timedelta(microseconds=1)) * 1000
