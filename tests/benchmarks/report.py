"""The results of a run: rows, ratios and targets, as a table and as JSON."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import statistics
import subprocess
import timeit
from typing import Any

import msgspec
from setup import environment, program


class Row(msgspec.Struct, frozen=True):
    """One contestant in one scenario."""

    scenario: str
    contestant: str
    unit: str
    values: tuple[float, ...]
    """One value per round, in order."""
    best: float
    less_is_better: bool = False

    @property
    def spread(self) -> float:
        """Return the largest value divided by the smallest: 1.0 if the rounds agree."""
        return max(self.values) / min(self.values) if min(self.values) > 0 else float("inf")


class Target(msgspec.Struct, frozen=True):
    """A target of this project, and the measured value."""

    name: str
    wanted: float
    got: float | None
    """None if it was not measured; `why` has the reason."""
    at_most: bool = False
    unit: str = ""
    why: str = ""

    @property
    def met(self) -> bool | None:
        """None if it was not measured."""
        if self.got is None:
            return None
        return self.got <= self.wanted if self.at_most else self.got >= self.wanted


def row(
    scenario: str, contestant: str, unit: str, values: list[float], *, less_is_better: bool = False
) -> Row:
    """Return a row with the best of the rounds."""
    best = min(values) if less_is_better else max(values)
    return Row(scenario, contestant, unit, tuple(values), best, less_is_better)


def table(rows: list[Row], targets: list[Target], notes: list[str]) -> str:
    """Return Markdown: a table per scenario, then the targets."""
    lines: list[str] = []
    for scenario in dict.fromkeys(row.scenario for row in rows):
        of = [row for row in rows if row.scenario == scenario]
        lines += [
            f"### {scenario}",
            "",
            f"| | best, {of[0].unit} | median | spread |",
            "|---|--:|--:|--:|",
        ]
        for one in of:
            median = _short(statistics.median(one.values))
            lines.append(f"| {one.contestant} | {_short(one.best)} | {median} | {one.spread:.2f} |")
        lines.append("")
    lines += ["### Targets", "", "| | wanted | measured | met |", "|---|--:|--:|---|"]
    for target in targets:
        sign = "<=" if target.at_most else ">="
        got = "not measured" if target.got is None else f"{_short(target.got)}{target.unit}"
        met = {True: "yes", False: "**no**", None: target.why}[target.met]
        lines.append(
            f"| {target.name} | {sign} {_short(target.wanted)}{target.unit} | {got} | {met} |"
        )
    return "\n".join([*lines, "", *notes])


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def loop_ms() -> float:
    """Return the milliseconds of a fixed piece of Python, the best of several attempts: twice as
    many on a busy machine."""
    return (
        min(
            timeit.repeat(
                "for i in range(200_000): d[i & 7] = f(i)", "d = {}\nf = str", number=1, repeat=10
            )
        )
        * 1e3
    )


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": _cpu(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "a2a-proxy": importlib.metadata.version("a2a-proxy"),
        "versions": {
            name: _version(name)
            for name in ("nginx", "haproxy", "nghttpx", "h2load", "wrk", "mitmdump")
        },
        "load": os.getloadavg()[0],
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")),
                "",
            )
    except OSError:
        return platform.processor()


def _version(name: str) -> str:
    found = program(name)
    if found is None:
        return ""
    option = {"nginx": "-v", "haproxy": "-v", "wrk": "-v"}.get(name, "--version")
    done = subprocess.run(
        [found, option],
        capture_output=True,
        text=True,
        env=environment(dict(os.environ)),
        check=False,
    )
    numbers = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
    return numbers[0] if numbers else ""


def encode(rows: list[Row], targets: list[Target], details: dict[str, Any]) -> bytes:
    """Return the results as JSON."""
    body = {
        "machine": machine(),
        "rows": [{**msgspec.to_builtins(row), "spread": row.spread} for row in rows],
        "targets": [{**msgspec.to_builtins(target), "met": target.met} for target in targets],
        **details,
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"
