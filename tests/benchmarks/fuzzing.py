"""A long fuzz of the proxy. `tests/benchmarks/fuzz` calls it.

Conversations of the sample recordings are changed at random and played through real proxies between
a scripted client and a scripted agent. Everything runs on one core, so that the others stay free;
the recordings of a round are deleted after its checks, so that the disk does not fill up.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support_fuzz_round import Failure, Memory, Round, Totals, peak
from support_fuzz_stdio import fuzz_stdio
from support_ways import Way

ROUND_SECONDS = 600.0
"""Seconds that two proxies run; less if their files reach `MAX_DISK`."""
ROUND_CONNECTIONS = 40_000
MAX_DISK = 400 << 20
"""Bytes of recordings and journals at which a round ends. The checks may double them for a
moment."""
MAX_BEHIND = 8 << 20
"""Bytes of journal ahead of a recorder at which the round waits."""
LOOK_SECONDS = 2.0
PROGRESS_SECONDS = 60.0
STDIO_EVERY = 2_000
"""Connections per session of a stdio agent, because each session starts three processes."""
MAX_FAILURES = 1_000
"""Maximum number of failures with a line of their own; further ones are only counted."""
MAX_KEPT = 3
"""Maximum number of failed rounds whose files are kept."""


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to play (60)")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat the run of this seed; else one is drawn"
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="NUMBER", help="begin with this connection (0)"
    )
    parser.add_argument(
        "--connections", type=int, default=None, metavar="N", help="play so many at most"
    )
    parser.add_argument(
        "--failures",
        type=Path,
        default=Path("fuzz-failures"),
        metavar="FOLDER",
        help="where failures go, if there are any",
    )
    parser.add_argument(
        "--ways",
        type=lambda text: tuple(Way(each) for each in text.split(",")),
        default=(Way.PLAIN,),
        metavar="WAY,...",
        help=f"how clients reach agents: {', '.join(Way)} (plain)",
    )
    parser.add_argument("--all-cores", action="store_true", help="use every core")
    return parser.parse_args()


class Fuzz:
    """One run of several rounds."""

    def __init__(
        self,
        seed: int,
        first: int,
        last: int | None,
        seconds: float,
        failures: Path,
        ways: tuple[Way, ...],
    ) -> None:
        self.totals = Totals()
        self.rounds: list[list[Memory]] = []
        self._seed = seed
        self._numbers = itertools.count(first) if last is None else iter(range(first, last))
        self._ends = time.monotonic() + seconds
        self._began = self._told = time.monotonic()
        self._folder = failures
        self._ways = ways
        self._kept = 0

    def run(self) -> None:
        """Play until the time is over or every connection has been played."""
        while time.monotonic() < self._ends:
            before = self.totals.connections, len(self.totals.failures)
            with tempfile.TemporaryDirectory(
                prefix="a2a-fuzz-", ignore_cleanup_errors=True
            ) as folder:
                self._round(Path(folder))
                if len(self.totals.failures) > before[1]:
                    self._keep(Path(folder))
            self._write_failures()
            if self.totals.connections == before[0]:
                return

    def _round(self, folder: Path) -> None:
        totals = self.totals
        totals.memory = []
        first, failed = totals.connections, len(totals.failures)
        running = Round(folder, totals, ways=self._ways)
        numbers: list[int] = []
        try:
            asyncio.run(self._play(running, numbers))
            running.finish()
            if numbers and Way.PLAIN in self._ways:
                fuzz_stdio(
                    folder / "stdio",
                    self._seed,
                    range(numbers[0], numbers[-1] + 1, STDIO_EVERY),
                    totals,
                )
        except (
            Exception
        ) as wrong:  # a check that could not run has failed; the next round may show more
            totals.add(Failure(-1, f"the round could not be finished: {wrong!r}"))
        finally:
            running.kill()
        self.rounds.append(totals.memory)
        for number, failure in enumerate(totals.failures[failed:], failed):
            if failure.number < 0 and numbers:
                again = f"--seed {self._seed} --first {numbers[0]} --connections {len(numbers)}"
                totals.failures[number] = Failure(-1, f"{again}: {failure.what}")
        self._say(f"round {len(self.rounds)} judged, {totals.connections - first} connections")

    async def _play(self, running: Round, numbers: list[int]) -> None:
        enough = asyncio.Event()
        began = time.monotonic()

        async def look() -> None:
            while True:
                running.sample()
                running.wait_for_recorders(MAX_BEHIND)
                now = time.monotonic()
                size = sum(link.size() for link in running.links)
                dead = any(link.deaths() for link in running.links)
                if now > self._ends or now - began > ROUND_SECONDS or size > MAX_DISK or dead:
                    enough.set()
                if now - self._told > PROGRESS_SECONDS:
                    self._say(f"{size >> 20} MiB on disk")
                await asyncio.sleep(LOOK_SECONDS)

        def numbered() -> Iterator[int]:
            for number in itertools.islice(self._numbers, ROUND_CONNECTIONS):
                numbers.append(number)
                yield number
                if enough.is_set():
                    return

        looking = asyncio.ensure_future(look())
        try:
            await running.play(self._seed, numbered())
        finally:
            looking.cancel()

    def _say(self, more: str) -> None:
        self._told = time.monotonic()
        totals = self.totals
        relay, recorder = totals.memory[-1] if totals.memory else (0.0, 0.0)
        print(
            f"{self._told - self._began:6.0f} s  {totals.connections:,} "
            f"connections, {totals.bytes:,} bytes, "
            f"{totals.unequal} unequal, {totals.deaths} deaths, {len(totals.failures)} failures; "
            f"relay {relay:.0f} MiB, recorder {recorder:.0f} MiB; {more}",
            flush=True,
        )

    def _keep(self, folder: Path) -> None:
        if self._kept < MAX_KEPT:
            self._kept += 1
            self._folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(
                folder, self._folder / f"{self._seed}-round-{len(self.rounds)}", dirs_exist_ok=True
            )

    def _write_failures(self) -> None:
        if self.totals.failures:
            self._folder.mkdir(parents=True, exist_ok=True)
            lines = [failure.line(self._seed) for failure in self.totals.failures[:MAX_FAILURES]]
            (self._folder / f"{self._seed}.txt").write_text(
                "\n".join(lines) + "\n", errors="backslashreplace"
            )


def report(fuzz: Fuzz, seed: int) -> str:
    """Print the result of the run."""
    totals = fuzz.totals
    lines = [
        f"seed {seed}",
        f"connections {totals.connections:,}",
        f"bytes {totals.bytes:,}",
        f"reset by a peer {totals.broken:,}",
        f"answered by the proxy {totals.refused:,}",
        f"compared in part {totals.unjudged:,}",
        f"unequal {totals.unequal:,}",
        f"deaths {totals.deaths:,}",
        f"failures {len(totals.failures):,}",
        f"findings {totals.findings.total():,} of {len(totals.findings)} rules",
    ]
    lines += [f"  {rule} {count:,}" for rule, count in sorted(totals.findings.items())]
    lines += [
        f"judged otherwise by check {totals.differences.total():,}: {_words(totals.differences)}"
    ]
    lines += ["memory in MiB, relay and recorder: at the start, in the middle, at the end, peak"]
    for number, memory in enumerate(fuzz.rounds, 1):
        for name, samples in (("unchanged", memory[0::2]), ("defaults", memory[1::2])):
            if samples:
                points = [samples[0], samples[len(samples) // 2], samples[-1], peak(samples)]
                told = "; ".join(f"{relay:.0f} {recorder:.0f}" for relay, recorder in points)
                lines.append(f"  round {number} {name}: {told}")
    lines += [f"FAILED {failure.line(seed)[:2000]}" for failure in totals.failures[:20]]
    counts = (
        f"{totals.unequal:,} unequal, {totals.deaths:,} deaths, {len(totals.failures):,} failures"
    )
    lines += [f"{totals.connections:,} connections: {counts}"]
    return "\n".join(lines)


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(10)) or "none"


def main() -> int:
    """Play and report; return 1 if there is a failure."""
    options = arguments()
    if not options.all_cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    last = None if options.connections is None else options.first + options.connections
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # end all child processes too
    fuzz = Fuzz(seed, options.first, last, options.seconds, options.failures, options.ways)
    fuzz.run()
    print(report(fuzz, seed), flush=True)
    return 1 if fuzz.totals.failures else 0


if __name__ == "__main__":
    sys.exit(main())
