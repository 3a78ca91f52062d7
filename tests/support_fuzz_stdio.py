"""Mutated conversations through `a2a-proxy stdio`, and the bytes that each side must have
received."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from a2a_proxy.model.wire import Direction
from support_cli import until
from support_fuzz import Plan, Steps, plan
from support_fuzz_round import Failure, Totals, judge
from support_stdio import Client, wrapped

AGENT = Path(__file__).resolve().parent / "peers" / "stdio" / "scripted.py"
EXIT_CODE = 3
DELIVERY_SECONDS = 0.2
"""Seconds for which the client waits for the agent's output before it continues."""


def fuzz_stdio(folder: Path, seed: int, numbers: range, totals: Totals) -> None:
    """Play sessions one after another into one recording, then check it."""
    recording, state = folder / "recording.a2a", folder / "state"
    for number in numbers:
        one = plan(seed, number, stdio=True)
        totals.connections += 1
        problems = _play(folder / str(number), recording, state, one, totals)
        totals.unequal += bool(problems)
        for what in problems:
            totals.add(Failure(number, f"stdio: {what}", (one.sample, *one.changes)))
    journals = state / "journals"
    until(lambda: not journals.exists() or not list(journals.iterdir()))
    for what in judge(recording, state, totals):
        totals.add(Failure(-1, f"stdio: {what}"))


def _play(folder: Path, recording: Path, state: Path, one: Plan, totals: Totals) -> list[str]:
    folder.mkdir(parents=True)
    steps = as_agent_ends(one.steps)
    script, received = folder / "script.json", folder / "received"
    script.write_text(
        json.dumps([[what, int(direction), data.hex()] for what, direction, data in steps])
    )
    command = [sys.executable, "-SE", str(AGENT), str(script), str(received)]
    client = Client(wrapped(command, "--record", recording), state)
    try:
        client.read()
        _write(client, steps)
        code, _ = client.end()
    finally:
        client.process.kill()
    written, said, logged = (_of(steps, *which) for which in (("data", 0), ("data", 1), ("log", 1)))
    totals.bytes += len(written) + len(said) + len(logged)
    killed = any(what == "reset" for what, _, _ in steps)
    totals.broken += killed
    read = received.read_bytes() if received.exists() else b""
    return list(_problems(client, code, killed, (written, read), (said, logged)))


def as_agent_ends(steps: Steps) -> Steps:
    """Adapt the steps to pipes: a client that resets closes stdin; an agent that resets kills
    itself. stderr belongs to the agent."""
    found: Steps = []
    for what, direction, data in steps:
        if what == "log":
            found.append((what, Direction.TO_CLIENT, data))
        elif what == "reset" and direction is Direction.TO_AGENT:
            found.append(("eof", direction, data))
        else:
            found.append((what, direction, data))
    return found


def _write(client: Client, steps: Steps) -> None:
    """Write the client's side of the script."""
    expected = 0
    with contextlib.suppress(BrokenPipeError, ValueError):  # the agent is gone, or stdin is closed
        for what, direction, data in steps:
            if direction is Direction.TO_CLIENT:
                expected += len(data) if what == "data" else 0
                continue
            with contextlib.suppress(AssertionError):
                until(lambda size=expected: len(client.out) >= size, DELIVERY_SECONDS)  # type: ignore[misc]
            if what == "eof":
                break
            client.write(data)
    with contextlib.suppress(BrokenPipeError):
        client.close()


def _problems(
    client: Client, code: int, killed: bool, stdin: tuple[bytes, bytes], out: tuple[bytes, bytes]
) -> Iterator[str]:
    written, read = stdin
    if killed and not written.startswith(read):
        yield f"the agent read {len(read)} bytes that were not written"
    if not killed and written != read:
        yield f"the agent read {len(read)} bytes of {len(written)}"
    for name, wanted, got in (("stdout", out[0], client.out), ("stderr", out[1], client.err)):
        if wanted != got:
            yield f"{name} had {len(got)} bytes of {len(wanted)}: ...{bytes(got[-200:])!r}"
    if code != (-signal.SIGKILL if killed else EXIT_CODE):
        yield f"the exit code was {code}"


def _of(steps: Steps, kind: str, direction: int) -> bytes:
    return b"".join(data for what, way, data in steps if (what, way) == (kind, direction))
