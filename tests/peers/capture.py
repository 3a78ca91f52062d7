"""Capture the bytes of real peers, one JSON line per chunk, as samples for decoders.

    python tests/peers/capture.py FOLDER [NAME ...]

Writes FOLDER/<kind>-<binding>.jsonl: `{"conn", "dir" (0 client to agent, 1 agent to client), "at"
(ns), "b64"}`, and `{"conn", "dir", "at", "eof": true}` where a direction ended.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support_peers import Captured, agent, forwarders, run_client

COMMON = ["card", "unary", "streaming", "input", "errors"]
MORE = [*COMMON, "parts", "cancel", "failures"]
BINDINGS = ("jsonrpc", "rest", "grpc")
RUNS: dict[str, tuple[str, str, str, list[str]]] = {
    **{f"sdk1-{b}": ("sdk1", "sdk1", b, [*MORE, "tricky"]) for b in BINDINGS},
    **{f"sdk03-{b}": ("sdk03", "sdk03", b, MORE) for b in BINDINGS},
    **{f"js-{b}": ("sdk1", "js", b, [*COMMON, "cancel"]) for b in BINDINGS},
    "0_1": ("0_1", "0_1", "jsonrpc", [*COMMON, "cancel", "failures"]),
    "0_2": ("0_2", "0_2", "jsonrpc", [*COMMON, "cancel", "failures"]),
    "vendor": ("vendor", "vendor", "jsonrpc", ["streaming", "failures", "errors"]),
}


async def save(name: str, folder: Path) -> None:
    """Run one pair through forwarders and write the captured bytes; connections to the gRPC port
    have the last numbers."""
    agent_kind, client_kind, binding, scenarios = RUNS[name]
    with agent(agent_kind) as far:
        async with forwarders(far) as (http, grpc):
            target = f"127.0.0.1:{grpc.port}" if grpc else ""
            await run_client(
                client_kind, binding, scenarios, f"http://127.0.0.1:{http.port}", target
            )
    first = 1 + max((one.conn for one in http.captured), default=-1)
    rest = (
        [Captured(one.conn + first, one.direction, one.at, one.data) for one in grpc.captured]
        if grpc
        else []
    )
    lines = [one.json() for one in sorted([*http.captured, *rest], key=lambda one: one.at)]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    print(name, len(lines), "chunks", sum(map(len, lines)), "characters")


async def main() -> None:
    """Capture the pairs on the command line, or all of them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or RUNS:
        await save(name, folder)


if __name__ == "__main__":
    asyncio.run(main())
