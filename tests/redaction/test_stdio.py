"""Secrets on the pipes of a stdio agent, in its command and in its log: no output contains one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from support_observer import observe
from support_pipe import DOWN, UP, Stdio
from support_rules import record
from support_secrets import Canaries


def session(canary: Canaries) -> Stdio:
    """Return a session with a canary at every place that may hold a secret."""
    command = f"env API_KEY={canary.plain('environment')} agent --token {canary.plain('flag')}"
    command += f" '--api-key={canary.plain('k')}'"
    fields = {
        "Authorization": f"Bearer {canary('header')}",
        "X-API-Key": canary.plain("key"),
        "X-Auth-Token": canary("t"),
    }
    found = Stdio(command).call(
        "GetTask", {"id": "t-1"}, 1, **{name.replace("-", "_"): v for name, v in fields.items()}
    )
    found.log(f"starting agent --password {canary.plain('log flag')}\n".encode())
    found.log(
        f"Authorization: Bearer {canary('log header')}\n"
        f'{{"apiKey":"{canary("log json")}"}}\n'.encode()
    )
    found.read(f"debug: token={canary.plain('stray')}\n".encode())
    found.answer({"jsonrpc": "2.0", "id": 9, "result": {"secret": canary("unknown id")}})
    found.answer({"type": "handshake", "sessionToken": canary("handshake")})
    metadata = {"accessToken": canary("result"), "echo": f"you sent {canary('header')}"}
    found.result(
        {
            "id": "t-1",
            "contextId": "c",
            "status": {"state": "TASK_STATE_WORKING"},
            "metadata": metadata,
        }
    )
    found.log(f"bye {canary('result')}".encode())
    return found.eof(UP).exit(3).closed()


def test_no_output_has_a_secret() -> None:
    """No secret is in frames with their framing, exchanges, connections, tasks and findings."""
    canary = Canaries()
    seen = observe(session(canary).session())
    out = msgspec.json.encode([seen.out, seen.connections, seen.exchanges, [*seen.tasks.values()]])
    payloads = b"".join(getattr(each, "payload", b"") for each in seen.out)
    headers = b"".join(
        b"".join(pair) for each in seen.exchanges.values() for pair in each.request_headers
    )
    assert len(canary.at) == 13
    assert canary.found_in(out + payloads + headers) == []
    assert b"redacted-" in payloads


def test_the_recording_has_no_secret(tmp_path: Path) -> None:
    """Neither the file nor its write-ahead log has a secret, even if bytes of a message are
    missing."""
    canary = Canaries()
    chunks = (
        session(canary)
        .read(b"Content-Length: 900\r\n\r\n" + f'{{"token":"{canary("cut")}'.encode())
        .eof(DOWN)
        .session()
    )
    record(tmp_path / "r.db", chunks)
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(data) > 1000
    assert canary.found_in(data) == []
