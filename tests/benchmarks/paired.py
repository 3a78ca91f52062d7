"""The recorder of two trees in turns, on the same traffic: the processor time of one divided by
that of the other.

    .venv/bin/python tests/benchmarks/paired.py OTHER_TREE [--rounds N] [--messages N]

OTHER_TREE is another clone of this project. Both run with the interpreter and the dependencies of
this one. Traffic: the synthetic one of the benchmark, eight messages a read and one a read, and
that of agents that write with a language model, one event a read. Each tree generates its own
journals from the same seed, because their format may differ. A short journal of the same traffic is
recorded too, and subtracted: what a process loads with its first messages is not the cost of a
message.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
TRAFFIC = ("8 a read", "1 a read", "agent")
BEGINNING = 2_000
"""Messages of the short journals."""


class Run(msgspec.Struct):
    """One run of a recorder."""

    micros: float
    """Processor time of an A2A message after the first ones."""
    peak_mib: float
    bytes_per_message: float

    def __str__(self) -> str:
        return f"{self.micros:.1f} us {self.peak_mib:.0f} MiB {self.bytes_per_message:.1f} B"


def measure(tree: Path, folder: Path, messages: int) -> dict[str, Run]:
    """Return a run of the recorder of a tree for each kind of traffic, made by a process that
    imports this tree."""
    sources = os.pathsep.join(str(tree / name) for name in ("proto", "proxy", "tui"))
    command = [sys.executable, __file__, "--child", str(folder), "--messages", str(messages)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": sources}, stdout=subprocess.PIPE, check=True
    )
    return msgspec.json.decode(done.stdout, type=dict[str, Run])


def _run_child(folder: Path, messages: int) -> None:
    """Print the runs of the tree that `PYTHONPATH` names. Journals are kept in the folder for the
    next call."""
    import cost
    import journals

    folder.mkdir(exist_ok=True)
    makers = {
        TRAFFIC[0]: lambda path, count: journals.make(path, count, 8),
        TRAFFIC[1]: journals.make,
        TRAFFIC[2]: journals.make_agent,
    }
    facts, made = folder / "made.json", {}
    with cost.state_in(folder):
        if facts.exists():
            rows = msgspec.json.decode(facts.read_bytes(), type=dict[str, tuple[str, int, int]])
            made = {name: journals.Made(Path(row[0]), *row[1:]) for name, row in rows.items()}
        else:
            made = {
                f"{name}, {count}": make(folder / f"journal-{at}-{count}", count)
                for at, (name, make) in enumerate(makers.items())
                for count in (BEGINNING, messages)
            }
            rows = {
                name: (str(one.folder), one.messages, one.byte_count) for name, one in made.items()
            }
            facts.write_bytes(msgspec.json.encode(rows))
        runs = {name: cost.burst(one, folder) for name, one in made.items()}
    found = {}
    for name in TRAFFIC:
        short, whole = runs[f"{name}, {BEGINNING}"], runs[f"{name}, {messages}"]
        seconds = whole.cpu_seconds - short.cpu_seconds
        micros = 1e6 * seconds / (whole.messages - short.messages)
        found[name] = Run(micros, whole.peak_mib, whole.bytes_per_frame)
    sys.stdout.buffer.write(msgspec.json.encode(found))


def main() -> None:
    """Print each pair, and the medians of the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, nargs="?", help="the other clone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.child:
        _run_child(typed.child, typed.messages)
        return
    if typed.other is None or not (typed.other / "proxy").is_dir():
        parser.error("name another clone of this project")
    ratios: dict[str, list[float]] = {name: [] for name in TRAFFIC}
    with tempfile.TemporaryDirectory(prefix="a2a-paired-") as name:
        for turn in range(typed.rounds):
            trees = [(typed.other.resolve(), "other"), (TREE, "this")]
            pair = {
                at: measure(tree, Path(name) / at, typed.messages)
                for tree, at in trees[:: 1 - 2 * (turn % 2)]
            }
            for kind in TRAFFIC:
                other, this = pair["other"][kind], pair["this"][kind]
                ratios[kind].append(this.micros / other.micros)
                print(
                    f"{kind:9} other {other}, this {this}, ratio {ratios[kind][-1]:.3f}", flush=True
                )
    for kind, values in ratios.items():
        print(f"{kind:9} median of {len(values)} ratios {statistics.median(values):.3f}")


if __name__ == "__main__":
    main()
