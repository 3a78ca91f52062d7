"""A capture of what a real proxy relays, compared with what that proxy records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from a2a_inspect.commands.import_file import open_import
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from a2a_proxy.demo.client import DemoClient
from a2a_proxy.model.wire import Direction
from support_drive import demo_agent
from support_import import check_equal
from support_packets import CaptureFormat, Piece, disturb, make_segments, write_capture
from support_peers import Forwarder
from support_proxy import proxy


async def test_a_capture_of_all_bindings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON-RPC and REST with event streams, and gRPC: imported, decoded and judged as recorded."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    with demo_agent(lossy=True) as agent:
        http, grpc = Forwarder("127.0.0.1", agent.http), Forwarder("127.0.0.1", agent.grpc)
        addresses = [f"127.0.0.1:{await each.start()}" for each in (http, grpc)]
        with proxy(tmp_path, *addresses, "--rewrite-card", "never", "--keep-host") as recorded:
            await DemoClient(recorded.base_url.removeprefix("http://")).run(lossy=True)
            await asyncio.to_thread(recorded.stop)
        await http.stop()
        await grpc.stop()
    captured = [(number, each) for number, one in enumerate((http, grpc)) for each in one.captured]
    pieces = [
        Piece(1000 * number + each.conn, Direction(each.direction), each.at, each.data)
        for number, each in sorted(captured, key=lambda one: one[1].at)
    ]
    path = write_capture(
        tmp_path / "demo.pcapng", disturb(make_segments(pieces), 1), CaptureFormat("pcapng-ns")
    )
    source = open_import(path)
    write_import(source, tmp_path / "demo.a2a.db", ImportOptions())
    assert source.lacks == ()
    check_equal(tmp_path / "demo.a2a.db", recorded.recording)
