"""The benchmark: the measurements, their order and their targets. `tests/benchmarks/run` calls it.

The contestants of a scenario run in turn, round by round, each started for its turn and ended after
it, so that a disturbance of the machine affects all of them. Results of different runs are not
compared, only ratios within one run.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import beside
import cost
import exporting
import exports
import hostile
import inspecting
import journals
import judging
import lag
import load
import msgspec
import origins
import piped
import proxies
import querying
import replaying
import starving
import stream_cost
import streams
from processes import free_port, running
from proxies import Contestant
from report import Row, Target, encode, loop_ms, row, table

OURS, REWRITING, PROPAGATING, DIRECT, MITMPROXY, NGINX = (
    "a2a-proxy, recording",
    "a2a-proxy, rewriting",
    "a2a-proxy, propagating",
    "direct",
    "mitmproxy",
    "nginx",
)
HTTP1: dict[str, Contestant] = {
    DIRECT: proxies.direct,
    OURS: proxies.a2a_proxy,
    PROPAGATING: proxies.a2a_proxy_propagating,
    MITMPROXY: proxies.mitmproxy,
    NGINX: proxies.nginx_http1,
    "HAProxy": proxies.haproxy_http1,
}
HTTP2: dict[str, Contestant] = {
    DIRECT: proxies.direct,
    OURS: proxies.a2a_proxy,
    REWRITING: proxies.a2a_proxy_rewriting,
    PROPAGATING: proxies.a2a_proxy_propagating,
    NGINX: proxies.nginx_http2,
    "HAProxy": proxies.haproxy_http2,
    "nghttpx": proxies.nghttpx,
}
TLS: dict[str, Contestant] = {
    DIRECT: proxies.direct,
    OURS: proxies.a2a_proxy_tls,
    MITMPROXY: proxies.mitmproxy_tls,
    NGINX: proxies.nginx_tls,
    "HAProxy": proxies.haproxy_tls,
}
HTTP2_TLS: dict[str, Contestant] = {
    DIRECT: proxies.direct,
    OURS: proxies.a2a_proxy_tls,
    MITMPROXY: proxies.mitmproxy_tls,
    NGINX: proxies.nginx_http2_tls,
    "HAProxy": proxies.haproxy_http2_tls,
}
STREAM = {
    name: contestant for name, contestant in HTTP2.items() if name not in (REWRITING, PROPAGATING)
}
FORWARDING = "a2a-proxy, absolute form"
BURST = 8
"""Messages in one read of the relay in a burst. Measured: 16 with h2load, 2 with Python's gRPC
server."""
FOLLOWED = 5_000
"""Messages per second while the screen follows a recorder."""
_TURNS = 5
"""Minimum number of attempts if the best ones of two contestants are compared: on a shared machine
one attempt may take twice as long as the next."""
NOT_REWRITING = "this build does not rewrite the authority"


class Suite:
    """One run: its rows and targets so far."""

    def __init__(self, folder: Path, *, rounds: int, seconds: int) -> None:
        self.folder = folder
        self._lasting = folder
        """What is made once and used by several scenarios."""
        self._recordings: dict[int, tuple[cost.Cost, Path]] = {}
        self._rounds = rounds
        self._seconds = seconds
        self.rows: list[Row] = []
        self.targets: list[Target] = []
        self.notes: list[str] = []
        self.details: dict[str, Any] = {}

    def http1(self) -> None:
        """Measure requests per second over HTTP/1.1."""
        with origins.http1(self.folder) as origin:
            best = self._rates("HTTP/1.1, 8 connections", HTTP1, origin, load.wrk)
        self._target("HTTP/1.1 throughput, times mitmproxy's", 25, best[OURS] / best[MITMPROXY])

    def forward(self) -> None:
        """Measure requests per second through a forward proxy, in absolute form, beside those of a
        listener."""
        values: dict[str, list[float]] = {OURS: [], FORWARDING: []}
        contestants = {OURS: proxies.a2a_proxy, FORWARDING: proxies.a2a_proxy_forward}
        with origins.http1(self.folder) as origin:
            for name, port in self._turns(contestants, origin):
                target = origin if name == FORWARDING else 0
                values[name].append(load.wrk(self.folder, port, self._seconds, target))
        title = "HTTP/1.1 through a forward proxy, 8 connections"
        self.rows += [row(title, name, "requests/s", of) for name, of in values.items()]
        ratio = max(values[FORWARDING]) / max(values[OURS])
        self._target(
            "HTTP/1.1 throughput of the forward proxy, times that of a listener", 0.7, ratio
        )

    def tls(self) -> None:
        """Measure requests per second over HTTP/1.1 with TLS on both sides."""
        with origins.https(self.folder) as origin:
            best = self._rates(
                "HTTP/1.1 over TLS, 8 connections", TLS, origin, partial(load.wrk, tls=True)
            )
        self._target(
            "HTTP/1.1 throughput over TLS, times mitmproxy's", 10, best[OURS] / best[MITMPROXY]
        )

    def http2_tls(self) -> None:
        """Measure requests per second over HTTP/2 with TLS on both sides."""
        with origins.http2(self.folder, tls=True) as origin:
            title = "HTTP/2 over TLS, 8 connections x 16 streams"
            best = self._rates(title, HTTP2_TLS, origin, partial(load.h2load, tls=True))
        self._target(
            "HTTP/2 throughput over TLS, times nginx grpc_pass", 1, best[OURS] / best[NGINX]
        )

    def intercept(self) -> None:
        """Measure new connections per second whose TLS is opened."""
        contestants: dict[str, Contestant] = {
            DIRECT: proxies.direct,
            OURS: proxies.a2a_proxy_intercepting,
        }
        with origins.https(self.folder) as origin:
            self._rates(
                "Intercepted TLS connections, one request each",
                contestants,
                origin,
                lambda _, port, seconds: load.tls_connections(port, origin, seconds),
                "connections/s",
            )

    def http2(self) -> None:
        """Measure requests per second over HTTP/2."""
        contestants = dict(HTTP2)
        rewrites = proxies.rewrites_authority(self.folder)
        if not rewrites:
            del contestants[REWRITING]
        with origins.http2(self.folder) as origin:
            best = self._rates(
                "HTTP/2, 8 connections x 16 streams", contestants, origin, load.h2load
            )
        self._target("HTTP/2 throughput, times nginx grpc_pass", 2, best[OURS] / best[NGINX])
        ratio = best[REWRITING] / best[NGINX] if rewrites else None
        why = "" if rewrites else NOT_REWRITING
        self._target(
            "HTTP/2 throughput with authority rewriting, times nginx grpc_pass", 0.8, ratio, why=why
        )

    def latency(self) -> None:
        """Measure round trips, one after another."""
        p50: dict[str, list[float]] = {name: [] for name in HTTP1}
        p99: dict[str, list[float]] = {name: [] for name in HTTP1}
        with origins.http1(self.folder) as origin:
            for name, port in self._turns(HTTP1, origin):
                half, most = load.percentiles(load.ping(port, self._seconds / 2))
                p50[name].append(half)
                p99[name].append(most)
        for word, values in (("p50", p50), ("p99", p99)):
            for name in HTTP1:
                title = f"Round trip of 400 bytes, one connection, {word}"
                self.rows.append(row(title, name, "us", values[name], less_is_better=True))
        added = min(p50[OURS]) - min(p50[DIRECT])
        self._target("latency added at one connection, p50", 60, added, at_most=True, unit=" us")

    def stream(self) -> None:
        """Measure messages per second of one gRPC server stream in Python."""
        port = free_port()
        command = [sys.executable, str(load.HERE / "grpc_stream.py"), "server", str(port)]
        with running(command, port, self.folder / "stream.err"):
            self._rates(
                "gRPC server stream, grpc.aio on both ends",
                STREAM,
                port,
                lambda _, to, s: load.grpc_stream(to, s),
                "messages/s",
            )

    def stream_cost(self) -> None:
        """Measure the processor time of each process for an event of a Python agent."""
        contestants: dict[str, stream_cost.Contestant] = {
            DIRECT: stream_cost.direct,
            OURS: stream_cost.ours,
            MITMPROXY: stream_cost.mitmdump,
        }
        values: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
        for name in [*contestants] * self._rounds:
            values[name].append(stream_cost.measure(self.folder, contestants[name]))
        median: dict[tuple[str, str], float] = {}
        title = f"Agent of the Python SDK, {stream_cost.STREAMS} event streams, processor time"
        for name, rounds in values.items():
            for process in rounds[0]:
                micros = [each[process] for each in rounds]
                median[name, process] = statistics.median(micros)
                words = f"{name}: {process}"
                self.rows.append(row(title, words, "us/event", micros, less_is_better=True))
        relay = median[OURS, stream_cost.RELAY]
        both = relay + median[OURS, stream_cost.RECORDER]
        agent = 100 * both / median[OURS, stream_cost.AGENT]
        times = both / median[MITMPROXY, stream_cost.PROXY]
        for name, wanted, got, unit in (
            ("relay and recorder, of the agent's processor time", 36, agent, " %"),
            ("relay and recorder, times mitmdump with streamed bodies", 0.8, times, ""),
            ("relay, an event", 50, relay, " us"),
        ):
            self._target(f"{name}, median", wanted, got, at_most=True, unit=unit)

    def recorder(self, messages: int, paced: int) -> None:
        """Measure rate, memory and size of the recorder."""
        with cost.state_in(self.folder):
            singly = journals.make(self.folder / "singly", 100_000)
            small = journals.make(self.folder / "small", 100_000, BURST)
            large = journals.make(self.folder / "large", messages, BURST)
            few = journals.make(self.folder / "paced", paced)
            start = cost.burst(journals.make(self.folder / "start", 1), self.folder).cpu_seconds
            costs: dict[str, list[cost.Cost]] = {
                "100,000, one per read": [],
                f"100,000, {BURST} per read": [],
            }
            for _ in range(self._rounds):
                for name, made in zip(costs, (singly, small), strict=True):
                    costs[name].append(cost.burst(made, self.folder, start))
            big = cost.burst(large, self.folder, start)
            costs[f"{messages:,}, {BURST} per read"] = [big]
            trickle = cost.trickle(few, self.folder)
        for name, of in costs.items():
            self.rows.append(
                row("Recorder, one core", name, "A2A frames/s", [one.per_second for one in of])
            )
        self.details["recorder"] = {
            name: [cost.report(one) for one in of] for name, of in costs.items()
        }
        self.details["recorder"]["one commit per frame"] = [cost.report(trickle)]
        bursts = [*costs[f"100,000, {BURST} per read"], big]
        rate = max(one.per_second for one in bursts)
        peak = min(one.peak_mib for one in bursts)
        self._target("A2A frames recorded per second of one core", 50_000, rate)
        name = f"bytes on disk per frame, burst of {messages:,}"
        self._target(name, 150, big.bytes_per_frame, at_most=True)
        self._target(
            "bytes on disk per frame, one commit each", 200, trickle.bytes_per_frame, at_most=True
        )
        name = f"peak memory at {messages:,} frames ({big.peak_mib:.0f} MiB), times that at 100,000"
        self._target(name, 1.25, big.peak_mib / peak, at_most=True)

    def many_streams(self, count: int, messages: int) -> None:
        """Measure the recorder with many streams of one task, closed or open at the end, and with
        empty messages."""
        with cost.state_in(self.folder):
            start = cost.burst(journals.make(self.folder / "start", 1), self.folder).cpu_seconds
            made = {
                f"{count} streams, a task each": streams.sse(count, count),
                f"{count} streams of one task": streams.sse(count, 1),
                f"{count} streams of one task, open at the end": streams.sse(count, 1, last=""),
                f"{4 * count} streams of one task": streams.sse(4 * count, 1),
                f"{count} gRPC streams of one task": streams.grpc(count, 1),
                f"{messages:,} empty gRPC messages": streams.empty(messages),
            }
            kinds = {
                name: journals.written(self.folder / str(at), made[name])
                for at, name in enumerate(made)
            }
            costs: dict[str, list[cost.Cost]] = {name: [] for name in kinds}
            for name in [*kinds] * self._rounds:
                costs[name].append(cost.burst(kinds[name], self.folder, start))
        title = "Recorder, processor time of a frame"
        micros = {name: [1e6 / one.per_second for one in of] for name, of in costs.items()}
        self.rows += [
            row(title, name, "us", of, less_is_better=True) for name, of in micros.items()
        ]
        self.details["many-streams"] = {
            name: [cost.report(one) for one in of] for name, of in costs.items()
        }
        apart, together, _, more, _, _ = (min(of) for of in micros.values())
        self._target(
            f"a frame of {count} streams of one task, times that with a task each",
            2,
            together / apart,
            at_most=True,
        )
        self._target(
            f"a frame of {4 * count} streams of one task, times that of {count}",
            1.5,
            more / together,
            at_most=True,
        )
        peak = min(one.peak_mib for one in costs[f"{messages:,} empty gRPC messages"])
        self._target(
            f"peak memory at {messages:,} empty gRPC messages", 120, peak, at_most=True, unit=" MiB"
        )

    def rules(self, messages: int, tasks: int) -> None:
        """Measure the cost of rules while recording, the memory of open tasks, and the time to
        check a recording again."""
        with cost.state_in(self.folder):
            made = journals.make(self.folder / "judged", 100_000, BURST)
            large = journals.make(self.folder / "again", messages, BURST)
            nothing = journals.make(self.folder / "start", 1)
            modes = {"without rules": False, "with rules": True}
            start = dict.fromkeys(modes, math.inf)
            for name, rules in [*modes.items()] * _TURNS:
                start[name] = min(
                    start[name], cost.burst(nothing, self.folder, rules=rules).cpu_seconds
                )
            costs: dict[str, list[cost.Cost]] = {name: [] for name in modes}
            for name, rules in [*modes.items()] * max(self._rounds, _TURNS):
                costs[name].append(cost.burst(made, self.folder, start[name], rules=rules))
            _, recording = cost.recorded(large, self.folder)
        took: dict[str, list[float]] = {}
        for name, of in costs.items():
            took[name] = [1e6 / each.per_second for each in of]
            self.rows.append(
                row("Recorder, one core", name, "us/A2A frame", took[name], less_is_better=True)
            )
        opened, again = judging.open_tasks(tasks), judging.again(recording)
        self.rows.append(
            row(
                f"{tasks:,} open tasks",
                "growth of the memory",
                "MiB",
                [opened.mib],
                less_is_better=True,
            )
        )
        title = f"{again.frames:,} frames checked again"
        for name, value in (
            ("seconds per 1,000,000", again.per_million),
            ("MiB after a tenth", again.mib_at_tenth),
            ("MiB at the end", again.mib),
        ):
            self.rows.append(row(title, name, "see left", [value], less_is_better=True))
        self.details["rules"] = {
            name: [cost.report(each) for each in of] for name, of in costs.items()
        }
        self.details["rules"] |= {
            "tasks": msgspec.to_builtins(opened),
            "again": msgspec.to_builtins(again),
        }
        ratio = min(took["with rules"]) / min(took["without rules"])
        self._target("time per frame with rules, times that without", 1.4, ratio, at_most=True)
        self._target(
            "memory of 100,000 open tasks",
            200,
            opened.mib * 100_000 / tasks,
            at_most=True,
            unit=" MiB",
        )
        self._target(
            "1,000,000 frames checked again", 60, again.per_million, at_most=True, unit=" s"
        )

    def query(self, messages: int) -> None:
        """Measure filters over a recording: first pages by column, first results of a search in
        payloads."""
        spent, recording = self._recording(messages)
        pages, searches = querying.columns(recording), querying.words(recording)
        for one in pages:
            title = f"First page of 100, {one.rows} of {spent.frames:,} frames"
            self.rows.append(row(title, one.filter, "ms", [1e3 * one.page], less_is_better=True))
        for one in searches:
            for word, value in (("first sign", one.sign), ("first page or end", one.page)):
                title = f"Search of payloads, {one.rows} of {spent.frames:,} frames, {word}"
                self.rows.append(row(title, one.filter, "ms", [1e3 * value], less_is_better=True))
        self.details["query"] = [msgspec.to_builtins(one) for one in (*pages, *searches)]
        slowest, latest = max(one.page for one in pages), max(one.sign for one in searches)
        self._target("slowest first page by column", 300, 1e3 * slowest, at_most=True, unit=" ms")
        self._target("latest first sign of a search", 300, 1e3 * latest, at_most=True, unit=" ms")

    def inspect(self, messages: int, seconds: float) -> None:
        """Measure the delays of the screen, over a large recording and while it grows."""
        spent, recording = self._recording(messages)
        opened = [inspecting.opening(recording, self.folder) for _ in range(self._rounds)]
        title = f"Screen, {spent.frames:,} frames"
        for name, values in zip(("", ", processor time"), zip(*opened, strict=True), strict=True):
            name = f"start of the process to the first rows{name}"
            self.rows.append(
                row(title, name, "ms", [1e3 * each for each in values], less_is_better=True)
            )
        still = inspecting.moving(recording, self.folder, seconds)
        with cost.state_in(self.folder):
            live = journals.make(self.folder / "live", int(8 * seconds * FOLLOWED), BURST)
            shutil.copy(recording, grown := self.folder / "grown.a2a.db")
            fed = inspecting.following(grown, live, self.folder, FOLLOWED, seconds)
        self._moves(title, still)
        self._moves(f"{title}, {FOLLOWED:,} more a second", fed)
        pages, searches = querying.columns(recording), querying.words(recording)
        self.details["inspect"] = [
            msgspec.to_builtins(one) for one in (still, fed, *pages, *searches)
        ]
        self._target(
            "screen: start to the first rows", 1000, 1e3 * min(opened)[0], at_most=True, unit=" ms"
        )
        of = [one for one in pages if one.rows == "exchanges"]
        self._target(
            "slowest first page by column",
            300,
            1e3 * max(one.page for one in of),
            at_most=True,
            unit=" ms",
        )
        latest = max(one.sign for one in searches)
        self._target("latest first sign of a search", 300, 1e3 * latest, at_most=True, unit=" ms")
        for text, took in still.filters.items():
            self.rows.append(
                row(
                    title,
                    f"Enter to the first rows of {text[:9]}",
                    "ms",
                    [1e3 * took],
                    less_is_better=True,
                )
            )
        slowest = 1e3 * max(still.filters.values())
        self._target(
            "screen: Enter to the first rows of a filter", 300, slowest, at_most=True, unit=" ms"
        )
        for words, looked in (("", still), (f", {FOLLOWED:,} frames/s", fed)):
            pause = 1e3 * max(one.pause for one in looked.moves)
            self._target(
                f"longest pause of the screen{words}", 100, pause, at_most=True, unit=" ms"
            )
        mib = max(still.mib, fed.mib)
        self._target("memory of the screen", 200, mib, at_most=True, unit=" MiB")

    def hooks(self, messages: int) -> None:
        """Measure the cost of a hook that computes forever for the recorder."""
        hooks = {"no hook": "", "a hook that spins": "spinning:Spins"}
        with cost.state_in(self.folder):
            made = journals.make(self.folder / "hooked", messages, BURST)
            first = journals.make(self.folder / "first", 1)
            rates: dict[str, list[float]] = {name: [] for name in hooks}
            for name, hook in [*hooks.items()] * max(self._rounds, _TURNS):
                rates[name].append(beside.rate(made, first, self.folder, hook))
        for name, values in rates.items():
            self.rows.append(row("Recorder beside a hook, wall time", name, "A2A frames/s", values))
        ratio = max(rates["a hook that spins"]) / max(rates["no hook"])
        self._target("recorder throughput with a hook that spins, times that without", 0.9, ratio)

    def otlp(self, messages: int, seconds: float) -> None:
        """Measure the cost of an export for the relay, also with a failing backend, and a large
        export."""
        with origins.http1(self.folder) as origin:
            turns = exporting.turns(self.folder, origin, seconds)
        self.rows += exports.live_rows(turns)
        self.targets += exports.live_targets(turns)
        self.notes += exports.notes(turns)
        made = [
            (spent.frames, path) for spent, path in map(self._recording, (messages // 10, messages))
        ]
        for where in ("file", *exporting.PROTOCOLS):
            with cost.state_in(self.folder):
                small, large = (exports.offline(path, frames, where) for frames, path in made)
            self.rows += exports.offline_rows([small, large])
            self.targets += exports.offline_targets(small, large)

    def hostile(self, messages: int) -> None:
        """Measure the longest delay of a normal client while a hostile one keeps the proxy busy."""
        every = (
            "--fault",
            hostile.FAULT,
            "--webhooks",
            "127.0.0.1:0",
            "--forward",
            "127.0.0.1:0",
            "--tls",
            "--propagate",
        )
        ways = {
            "": (),
            ", nothing rewritten": ("--rewrite-card", "never", "--keep-host"),
            ", every option": every,
        }
        with hostile.agent(self.folder, messages) as origin:
            for words, options in ways.items():
                rounds = [
                    hostile.measure(self.folder, origin, messages, *options)
                    for _ in range(self._rounds)
                ]
                title = f"Worst round trip beside a hostile client{words}"
                best = {}
                for kind in rounds[0]:
                    values = [each[kind] for each in rounds]
                    best[kind] = min(values)
                    self.rows.append(row(title, kind, "ms", values, less_is_better=True))
                added = max(best.values()) - best[hostile.QUIET]
                name = f"added to the worst round trip by a hostile client{words}"
                self._target(name, 50, added, at_most=True, unit=" ms")

    def lag(self, rate: float, seconds: float) -> None:
        """Measure the delay of the recording at a fixed rate."""
        with origins.http1(self.folder) as origin:
            seen = lag.measure(self.folder, origin, rate, seconds)
        self.details["lag"] = {name: getattr(seen, name) for name in seen.__struct_fields__}
        title = f"Recording behind the traffic, {rate:,.0f} requests/s for {seconds:g} s"
        for name, value in (
            ("requests/s answered", seen.rate),
            ("worst lag, s", seen.worst),
            ("lag at the end, s", seen.last),
        ):
            self.rows.append(row(title, name, "see left", [value]))
        self.rows.append(row(title, "drain after stop, s", "see left", [seen.drain]))
        self.rows.append(
            row(title, "exchanges recorded / requests", "see left", [seen.recorded / seen.requests])
        )

    def starve(self, events: int, seconds: float) -> None:
        """Measure the recorder beside busy processes: after a burst of events, and at a rate that
        it can carry."""
        ways = {"yielding": True, "at equal priority": False}
        runs: dict[str, list[starving.Starved]] = {name: [] for name in ways}
        for name, yields in [*ways.items()] * self._rounds:
            runs[name].append(self._stream(events, 0.0, yields=yields))
        for name, each in runs.items():
            title = (
                f"Recorder beside {starving.BUSY} busy processes, "
                f"after a burst of {events:,} events"
            )
            self.rows.append(row(title, name, "events/s", [one.drain_rate for one in each]))
        yielding, equal = ([one.drain_rate for one in each] for each in runs.values())
        ratio = statistics.median(
            first / second for first, second in zip(yielding, equal, strict=True)
        )
        rate = starving.SHARE * statistics.median(equal)
        steady = self._stream(round(rate * seconds), rate, yields=True)
        title = (
            f"Recorder beside {starving.BUSY} busy processes, "
            f"{rate:,.0f} events/s for {seconds:g} s"
        )
        self.rows.append(row(title, "worst lag", "s", [steady.worst], less_is_better=True))
        self.details["starve"] = {name: msgspec.to_builtins(each) for name, each in runs.items()}
        self.details["starve"]["paced"] = msgspec.to_builtins(steady)
        self._target(
            "recorder beside busy processes, times its rate at equal priority, median", 0.8, ratio
        )
        name = f"worst lag at {starving.SHARE} of that rate"
        self._target(name, 2, steady.worst, at_most=True, unit=" s")
        shown = [
            sample
            for one in (*runs["yielding"], *runs["at equal priority"], steady)
            for sample in one.samples
        ]
        name = f"largest error of {len(shown)} lags that were shown"
        if shown:
            wrong = max(shown, key=lambda sample: sample.error)
            name += (
                f" ({wrong.where}: {wrong.shown:g} s for {wrong.least:.1f} to {wrong.most:.1f} s)"
            )
            self._target(name, 1, wrong.error, at_most=True, unit=" s")
        else:
            self._target(name, 1, None, why="no lag was shown")

    def _stream(self, events: int, rate: float, *, yields: bool) -> starving.Starved:
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            return starving.run_stream(Path(place), events, rate, yields=yields)

    def stdio(self) -> None:
        """Measure the overhead of the stdio relay: start, end, round trip and throughput."""
        with cost.state_in(self.folder):
            contestants = piped.commands(self.folder)
            for title, unit, measure, less in (
                ("stdio: start to the agent's first byte", "ms", piped.start, True),
                ("stdio: end of stdin to the exit code", "ms", piped.end, True),
                ("stdio: round trip of 400 bytes, p50", "us", piped.trips, True),
                ("stdio: an agent that writes as fast as it can", "MiB/s", piped.bulk, False),
            ):
                values: dict[str, list[float]] = {name: [] for name in contestants}
                for _ in range(self._rounds):
                    for name, before in contestants.items():
                        values[name].append(measure(before))
                self.rows += [
                    row(title, name, unit, of, less_is_better=less) for name, of in values.items()
                ]
                if measure is piped.start:
                    added = min(values[piped.OURS]) - min(values[piped.DIRECT])
                    self._target(
                        "added to the start of a stdio agent", 150, added, at_most=True, unit=" ms"
                    )

    def replay(self) -> None:
        """Measure a call that a recording answers."""
        values: dict[str, list[float]] = {"jsonrpc": [], "rest": [], "grpc": []}
        for _ in range(self._rounds):
            for binding, took in values.items():
                with replaying.mock() as address:
                    took.append(replaying.p50(address, binding, self._seconds / 2))
        for binding, took in values.items():
            self.rows.append(
                row("Replayed unary call, p50", binding, "ms", took, less_is_better=True)
            )
            self._target(
                f"a replayed unary call, {binding}, p50", 3, min(took), at_most=True, unit=" ms"
            )

    def _recording(self, messages: int) -> tuple[cost.Cost, Path]:
        """Return a recording of that many messages, created once in a run."""
        if messages not in self._recordings:
            with cost.state_in(self._lasting):
                made = journals.make(self._lasting / f"asked-{messages}", messages, BURST)
                self._recordings[messages] = cost.recorded(made, self._lasting, rules=False)
        return self._recordings[messages]

    def _moves(self, title: str, looked: inspecting.Looked) -> None:
        """Add the delays of keys to the rows."""
        for move in looked.moves:
            for word, values in (("the cursor painted", move.painted), ("its row too", move.read)):
                if values:
                    half, most = statistics.median(values), max(values)
                    name = f"{move.name}: key to {word}, p50, longest {1e3 * most:.0f} ms"
                    self.rows.append(row(title, name, "ms", [1e3 * half], less_is_better=True))
            name = (
                f"{move.name}: longest pause of the loop, {1e3 * move.worked:.0f} ms of it at work"
            )
            self.rows.append(row(title, name, "ms", [1e3 * move.pause], less_is_better=True))

    def _rates(
        self,
        title: str,
        contestants: dict[str, Contestant],
        origin: int,
        measure: Callable[[Path, int, int], float],
        unit: str = "requests/s",
    ) -> dict[str, float]:
        values: dict[str, list[float]] = {name: [] for name in contestants}
        for name, port in self._turns(contestants, origin):
            values[name].append(measure(self.folder, port, self._seconds))
        rows = [row(title, name, unit, values[name]) for name in contestants]
        self.rows += rows
        return {one.contestant: one.best for one in rows}

    def _turns(self, contestants: dict[str, Contestant], origin: int) -> Any:
        for _ in range(self._rounds):
            for name, contestant in contestants.items():
                with contestant(self.folder, origin) as port:
                    yield name, port

    def _target(self, name: str, wanted: float, got: float | None, **facts: Any) -> None:
        self.targets.append(Target(name, wanted, got, **facts))


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="tests/benchmarks/run", description="compare a2a-proxy with other proxies"
    )
    scenarios = (
        "http1",
        "forward",
        "tls",
        "intercept",
        "http2",
        "http2-tls",
        "latency",
        "stream",
        "stream-cost",
        "recorder",
        "many-streams",
        "rules",
        "query",
        "inspect",
        "hooks",
        "otlp",
        "lag",
        "starve",
        "hostile",
        "stdio",
        "replay",
    )
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help=f"of {', '.join(scenarios)}; all by default",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short round: a look, not a measurement"
    )
    parser.add_argument(
        "--full", action="store_true", help="recorder, rules and query with 1,000,000 frames"
    )
    parser.add_argument("--rounds", type=int, help="rounds per contestant (3; with --quick 1)")
    parser.add_argument(
        "--seconds", type=float, help="of each mood of a backend, on end (80; with --quick 10)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument(
        "--profile", action="store_true", help="only show where the recorder's time goes"
    )
    typed = parser.parse_args()
    unknown = set(typed.scenarios) - set(scenarios)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    typed.scenarios = typed.scenarios or list(scenarios)
    return typed


def main() -> None:
    """Run the chosen measurements and print the results."""
    typed = parse()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="a2a-benchmark-") as name:
        folder = Path(name)
        if typed.profile:
            with cost.state_in(folder):
                print(cost.profile(journals.make(folder / "journal", 50_000, BURST), folder))
            return
        rounds = typed.rounds or (1 if typed.quick else 3)
        suite = Suite(folder, rounds=rounds, seconds=1 if typed.quick else 3)
        steps: dict[str, Callable[[], None]] = {
            "http1": suite.http1,
            "forward": suite.forward,
            "tls": suite.tls,
            "intercept": suite.intercept,
            "http2": suite.http2,
            "http2-tls": suite.http2_tls,
            "latency": suite.latency,
            "stream": suite.stream,
            "stream-cost": suite.stream_cost,
            "recorder": lambda: suite.recorder(*_sizes(typed)),
            "many-streams": lambda: suite.many_streams(
                *((200, 100_000) if typed.quick else (500, 500_000))
            ),
            "rules": lambda: suite.rules(_sizes(typed)[0], 20_000 if typed.quick else 100_000),
            "query": lambda: suite.query(_sizes(typed)[0]),
            "inspect": lambda: suite.inspect(*_looked_at(typed)),
            "stdio": suite.stdio,
            "replay": suite.replay,
            "hooks": lambda: suite.hooks(30_000 if typed.quick else 100_000),
            "otlp": lambda: suite.otlp(
                _sizes(typed)[0], typed.seconds or (10 if typed.quick else 80)
            ),
            "hostile": lambda: suite.hostile(30_000 if typed.quick else 300_000),
            "lag": lambda: suite.lag(5_000, 4 if typed.quick else 10),
            "starve": lambda: suite.starve(*((60_000, 8) if typed.quick else (300_000, 20))),
        }
        loops: list[float] = []
        for scenario in typed.scenarios:
            loops.append(loop_ms())
            print(
                f"{time.monotonic() - began:5.0f} s  {scenario}  (loop {loops[-1]:.1f} ms)",
                file=sys.stderr,
                flush=True,
            )
            with tempfile.TemporaryDirectory(dir=folder) as place:
                suite.folder = Path(place)
                steps[scenario]()
    loops.append(loop_ms())
    suite.details["loop_ms"] = loops
    note = (
        f"{time.monotonic() - began:.0f} s in all; "
        f"a fixed Python loop took {min(loops):.1f} to {max(loops):.1f} ms"
    )
    print(table(suite.rows, suite.targets, [*suite.notes, note]))
    if typed.json:
        typed.json.write_bytes(encode(suite.rows, suite.targets, suite.details))


def _looked_at(typed: argparse.Namespace) -> tuple[int, float]:
    """Return the number of messages of the recording on the screen, and the seconds of each
    action."""
    return (200_000, 2) if typed.quick else (1_000_000, 5)


def _sizes(typed: argparse.Namespace) -> tuple[int, int]:
    """Return the number of messages of the large burst, and of the run with one commit each."""
    if typed.full:
        return 1_000_000, 50_000
    return (200_000, 5_000) if typed.quick else (300_000, 20_000)


if __name__ == "__main__":
    main()
