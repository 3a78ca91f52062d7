"""What the proxy prints while it runs: a banner, a line per exchange, trouble, a summary.

Lines of exchanges go to stdout, everything about the proxy itself to stderr; with `--log-format json` all of it is one
JSON object a line on stdout. Printing never waits: a terminal that stands still stops no traffic.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Protocol, TextIO

import msgspec

from a2a_proxy.cli.printer import Printer
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.present import generations, text
from a2a_proxy.protocol.text import shell_line, make_visible
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    GapClosedStatus,
    LinesSkipped,
    RecorderDone,
    RecorderFailed,
    Status,
    TroubleEnded,
    TroubleStarted,
)


class StartInfo(msgspec.Struct, frozen=True):
    """What the banner says."""

    version: str
    routes: list[tuple[list[str], str, str]]
    """(listening addresses, upstream, upstream for gRPC or empty)."""
    recording: str
    redact: tuple[str, ...]
    """What is not recorded, as words of a policy; none: credentials."""
    endless: bool = True
    """It runs until somebody stops it."""


def _redacted(words: tuple[str, ...]) -> str:
    """What becomes of what is not to be recorded, for the banner."""
    if "none" in words:
        return "credentials are recorded too"
    if "metadata-only" in words:
        return "sizes, kinds, states, ids and times only: rules that need payloads are not asked"
    return f"credentials{' and what the policy names' if words else ''} are replaced by labels"


class HookEnd(msgspec.Struct, frozen=True):
    """How a hook did."""

    name: str
    outcome: str
    """`done`, or why it did not see all: `stopped`, `slow`, `died`, `failed`."""
    calls: int
    errors: int
    """Calls that failed."""
    behind_frames: int
    """Frames that it has not seen."""
    log: str
    again: str
    """The command that calls it for the whole recording."""


class Console(Protocol):
    """Where the proxy tells its user what happens."""

    def start(self, start: StartInfo) -> None:
        """The proxy listens."""

    def status(self, said: Status) -> None:
        """The recorder said something."""

    def stopping(self, open_connections: int) -> None:
        """The proxy takes no more connections."""

    def draining(self, behind: int) -> None:
        """The proxy is stopping; `behind` octets of journal are still to be recorded."""

    def note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Something the user should know; `loud`: a warning."""

    def hook(self, end: HookEnd) -> None:
        """A hook has been ended."""

    def close(self) -> None:
        """Everything has been said: wait for the reader, but not for ever."""


_CLOSE_SECONDS = 2.0
_ORDER_SECONDS = 0.2
"""How long lines on stderr wait for those on stdout, so that a terminal shows both in order."""
_OUTCOMES = ("ok", "error", "cut", "refused")
_COUNTS = (
    *("connections", "exchanges", *_OUTCOMES, "frames", "tasks"),
    *("findings", "error_findings", "warning_findings"),
)
_COLOURS = {"ok": "32", "error": "31", "cut": "33", "refused": "31", "live": "36", "waits": "36"}


class TextConsole:
    """For people."""

    def __init__(self, out: TextIO | None, err: TextIO | None, *, quiet: bool) -> None:
        self._out, self._err = Printer(out, _missed), Printer(err, _missed)
        self._quiet = quiet
        self._colour = out is not None and out.isatty() and not os.environ.get("NO_COLOR")
        self._recording = ""
        self._many = False
        """There is more than one upstream, so lines say which."""

    def start(self, start: StartInfo) -> None:
        """Say where it listens, where it sends, what it records, and what to type next."""
        for listening, upstream, grpc in start.routes:
            also = f" (HTTP/2 to {grpc})" if grpc else ""
            self._tell(f"a2a-proxy {start.version} listens on {', '.join(listening)} and sends to {upstream}{also}")
        self._many = len({upstream for _, upstream, _ in start.routes}) > 1
        secrets = _redacted(start.redact)
        self._recording = start.recording
        self._tell(f"recording to {start.recording}; {secrets}")
        self._tell(f"look at it with: {shell_line('a2a-inspect', start.recording)}")
        if start.endless:
            self._tell("stop with Ctrl-C")

    def status(self, said: Status) -> None:
        """Print what concerns the user."""
        if isinstance(said, ExchangeStatus):
            if not self._quiet:
                self._out(self._line(said))
        elif isinstance(said, FindingStatus):
            self._out(_finding_line(said))
        elif isinstance(said, TroubleEnded):
            self.note(said.message, loud=False)
        elif isinstance(said, GapClosedStatus):
            self._out(_healed_line(said))
        elif isinstance(said, LinesSkipped) and not self._quiet:
            self._out(_missed(said.count))
        elif isinstance(said, TroubleStarted | RecorderFailed):
            self.note(said.message, said.hint)
        elif isinstance(said, RecorderDone):
            self._summary(said)

    def stopping(self, open_connections: int) -> None:
        """Say what is waited for."""
        if open_connections:
            self._tell(f"stopping: {text.plural(open_connections, 'connection')} still open")

    def draining(self, behind: int) -> None:
        """Say how much is left."""
        left = f"{text.size(behind)} left to record" if behind else "the recorder is finishing"
        self._tell(f"stopping: {left} (Ctrl-C again leaves it to `a2a-inspect recover`)")

    def note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Print a warning, or just a line, with its hint."""
        self._tell(f"a2a-proxy: {'warning: ' if loud else ''}{message}")
        if hint:
            self._tell(f"a2a-proxy: hint: {hint}")

    def hook(self, end: HookEnd) -> None:
        """How often it was called, what failed, what it has not seen."""
        calls = f"{end.calls:,} call{'' if end.calls == 1 else 's'}"
        failed = f", {end.errors:,} of them failed" if end.errors else ""
        if end.outcome == "done" or not end.behind_frames:
            self.note(f"hook {end.name}: {calls}{failed}", f"see {end.log}" if failed else "", loud=bool(failed))
            return
        why = "is slow" if end.outcome == "slow" else end.outcome
        told = f"hook {end.name} {why}: {end.behind_frames:,} frames behind, given up; {calls}{failed}"
        self.note(told, f"call it for all of them: {end.again}")

    def close(self) -> None:
        """Wait until all is printed."""
        self._out.settle(_CLOSE_SECONDS)
        self._err.settle(_CLOSE_SECONDS)

    def _line(self, said: ExchangeStatus) -> str:
        exchange = said.exchange
        word = text.standing(exchange)
        parts = [
            text.clock(exchange.started),
            self._paint(f"{word:7}", word),
            f"#{exchange.id} {make_visible(text.title(exchange))}",
            text.manner(exchange),
            text.live(exchange),
        ]
        if self._many:
            parts.append(f"-> {make_visible(said.upstream)}")
        if exchange.task_id:
            parts.append(f"task {make_visible(text.short(exchange.task_id))}")
        if exchange.states:
            parts.append(make_visible(" > ".join(exchange.states)))
        if exchange.streaming:
            parts.append(text.plural(exchange.events, "event"))
        parts += [text.latency(exchange), generations.asked(exchange)]
        if exchange.error:
            parts.append(make_visible(exchange.error))
        elif word == "cut":
            parts.append(make_visible(exchange.how))
        return "  ".join(part for part in parts if part)

    def _paint(self, written: str, word: str) -> str:
        return f"\033[{_COLOURS[word]}m{written}\033[0m" if self._colour else written

    def _summary(self, done: RecorderDone) -> None:
        if not (done.connections or done.lost):
            self._tell("nothing was recorded")
            return
        whole = "capture complete: yes" if not done.lost else f"capture complete: no, {text.size(done.lost)} missing"
        outcomes = ", ".join(f"{count} {name}" for name in _OUTCOMES if (count := getattr(done, name)))
        exchanges = text.plural(done.exchanges, "exchange") + (f" ({outcomes})" if outcomes else "")
        counts = f"{exchanges}, {text.plural(done.frames, 'frame')}, {text.plural(done.tasks, 'task')}"
        self._tell(f"recorded {counts}; {_findings(done)}; {whole}")
        if done.findings:
            self._tell(f"what was found: {shell_line('a2a-inspect', 'check', self._recording)}")

    def _tell(self, line: str) -> None:
        """Print a line without colours on stderr."""
        self._out.settle(_ORDER_SECONDS)
        self._err(make_visible(line))


def _finding_line(said: FindingStatus) -> str:
    finding = said.finding
    first = f"{text.clock(finding.at)}  {finding.severity.name.lower():8}{finding.rule}"
    where = " ".join(filter(None, (text.place(finding), make_visible(said.operation))))
    return "  ".join(filter(None, (first, where, make_visible(finding.summary))))


def _healed_line(said: GapClosedStatus) -> str:
    gap = said.missed
    first = f"{text.clock(gap.healed)}  {'healed':8}task {make_visible(text.short(said.task_id))}"
    how = generations.healed(gap, lambda _: make_visible(said.operation))
    where = f"generation {generations.numbers(gap.first, gap.last)}, missed on #{gap.exchange}"
    return f"{first}  {where}: {how}"


def _findings(done: RecorderDone) -> str:
    """`3 findings (1 error, 2 infos)`."""
    infos = done.findings - done.error_findings - done.warning_findings
    counts = {"error": done.error_findings, "warning": done.warning_findings, "info": infos}
    told = ", ".join(text.plural(count, name) for name, count in counts.items() if count)
    return text.plural(done.findings, "finding") + (f" ({told})" if told else "")


def _missed(count: int) -> str:
    return f"              {text.plural(count, 'more line')} not shown; the recording has them all"


class JsonConsole:
    """For programs: one object a line, `event` says which."""

    def __init__(self, out: TextIO | None, *, quiet: bool) -> None:
        self._out = Printer(out, lambda count: _json("skipped", count=count))
        self._quiet = quiet

    def start(self, start: StartInfo) -> None:
        """`start`."""
        routes = [{"listen": a, "upstream": b, "upstream_grpc": c or None} for a, b, c in start.routes]
        self._put("start", version=start.version, routes=routes, recording=start.recording, redact=start.redact)

    def status(self, said: Status) -> None:
        """`exchange`, `finding`, `healed`, `skipped`, `trouble`, `error` or `summary`."""
        if isinstance(said, ExchangeStatus):
            if not self._quiet:
                self._put("exchange", live=said.live, upstream=said.upstream, **exchange_object(said.exchange))
        elif isinstance(said, FindingStatus):
            self._put("finding", operation=said.operation, **finding_object(said.finding))
        elif isinstance(said, GapClosedStatus):
            self._put("healed", **healed_object(said))
        elif isinstance(said, LinesSkipped):
            self._put("skipped", count=said.count)
        elif isinstance(said, TroubleStarted):
            self._put("trouble", message=said.message, hint=said.hint)
        elif isinstance(said, TroubleEnded):
            self._put("note", message=said.message, hint="")
        elif isinstance(said, RecorderFailed):
            self._put("error", message=said.message, hint=said.hint)
        elif isinstance(said, RecorderDone):
            counts = {name: getattr(said, name) for name in _COUNTS}
            self._put("summary", **counts, complete=said.clean and not said.lost, lost_bytes=said.lost)

    def stopping(self, open_connections: int) -> None:
        """`stopping`."""
        self._put("stopping", open_connections=open_connections)

    def draining(self, behind: int) -> None:
        """`draining`."""
        self._put("draining", behind_bytes=behind)

    def note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """`warning` or `note`."""
        self._put("warning" if loud else "note", message=message, hint=hint)

    def hook(self, end: HookEnd) -> None:
        """`hook`."""
        self._put("hook", **msgspec.to_builtins(end))

    def close(self) -> None:
        """Wait until all is printed."""
        self._out.settle(_CLOSE_SECONDS)

    def _put(self, event: str, **fields: object) -> None:
        self._out(_json(event, **fields))


def _json(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields}, ensure_ascii=True)


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as JSON with stable names."""
    evidence: dict[str, object] = dict(finding.evidence)
    if (count := finding.evidence.get("count", "")).isdecimal():
        evidence["count"] = int(count)
    told = {"severity": finding.severity.name.lower(), "at": text.utc(finding.at), "evidence": evidence}
    return {**msgspec.to_builtins(finding), **told}


def healed_object(said: GapClosedStatus) -> dict[str, object]:
    """A gap in a task's generations that was made good, as JSON with stable names."""
    gap = said.missed
    return {
        "task_id": said.task_id,
        "at": text.utc(gap.healed),
        "first": gap.first,
        "last": gap.last,
        "missed_at": text.utc(gap.at),
        "exchange": gap.exchange,
        "healed_by": gap.by or None,
        "operation": said.operation,
        "healed_at_generation": gap.generation,
    }


def exchange_object(exchange: Exchange) -> dict[str, object]:
    """An exchange as JSON with stable names; headers apart."""
    zero = text.latency_origin(exchange)
    return {
        "id": exchange.id,
        "started": text.utc(exchange.started),
        "operation": exchange.operation,
        "binding": exchange.binding.value,
        "dialect": exchange.dialect.value,
        "method": exchange.method,
        "target": exchange.target,
        "task_id": exchange.task_id,
        "context_id": exchange.context_id,
        "states": list(exchange.states),
        "outcome": text.outcome_of(exchange),
        "waits": exchange.waits,
        "how": exchange.how,
        "status": exchange.status or None,
        "grpc_status": exchange.grpc_status if exchange.grpc_status >= 0 else None,
        "error": exchange.error or None,
        "current_generation": exchange.current_generation,
        "if_generation_match": exchange.generation_match,
        "generation": exchange.generation or None,
        "streaming": exchange.streaming,
        "live_payload": exchange.live_payload or None,
        "half_close": exchange.half_close or None,
        "requests": exchange.requests,
        "events": exchange.events,
        "bytes_to_agent": exchange.bytes_to_agent,
        "bytes_to_client": exchange.bytes_to_client,
        "first_event_ns": max(exchange.first_event - zero, 0) if exchange.first_event else None,
        "duration_ns": max(exchange.closed - zero, 0) if exchange.closed else None,
        "connection": exchange.connection,
        "sent_traceparent": exchange.sent_traceparent or None,
    }


def make_console(log_format: str, *, quiet: bool) -> Console:
    """The console that the user asked for."""
    if log_format == "json":
        return JsonConsole(sys.stdout, quiet=quiet)
    return TextConsole(sys.stdout, sys.stderr, quiet=quiet)
