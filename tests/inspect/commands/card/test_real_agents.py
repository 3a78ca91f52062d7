"""`a2a-inspect card --probe` with agents of the SDKs: each interface of their cards answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support_cli import run_here
from support_peers import agent, require_peers

SDKS = [("sdk1", (), "1.0", 3), ("sdk1", ("--compat",), "0.3", 6), ("sdk03", (), "0.3", 3)]


@pytest.mark.peers
@pytest.mark.parametrize(("kind", "arguments", "version", "count"), SDKS, ids=str)
def test_every_interface_answers(
    kind: str, arguments: tuple[str, ...], version: str, count: int, tmp_path: Path
) -> None:
    """On every binding and in every version that the card declares, and the cards break no rule."""
    require_peers(kind)
    with agent(kind, *arguments) as peer:
        done = run_here(tmp_path / "state", "card", "--probe", "--format", "json", peer.base_url)
    assert (done.code, done.err) == (0, "")
    *findings, session, _ = map(json.loads, done.lines)
    assert {each["severity"] for each in findings} <= {"info"}
    assert len(session["notes"]) == count
    assert all("not found" in each for each in session["notes"])
    assert {each.split()[1] for each in session["notes"]} == {"JSONRPC", "HTTP+JSON", "GRPC"}
    assert sum(f" {version} at " in each for each in session["notes"]) == 3
