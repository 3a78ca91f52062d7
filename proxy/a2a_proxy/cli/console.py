"""The output of a running proxy: a banner, a line per exchange, warnings, a summary.

Lines of exchanges go to stdout, lines about the proxy to stderr; with `--log-format json` each line
is a JSON object on stdout. Printing never blocks: a stopped terminal does not stop traffic.
"""

import itertools
import json
import sys
from typing import Protocol, TextIO

import msgspec

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.console_lines import FindingRepeats, StatusBatch
from a2a_proxy.installation import inspect_command
from a2a_proxy.model.values import MissedReason, Severity
from a2a_proxy.present import generations, text
from a2a_proxy.present.output import ColouredWord, Printer
from a2a_proxy.present.text import exchange_object, finding_object
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    GapClosedStatus,
    LinesSkipped,
    ReceiverStatus,
    RecorderDone,
    RecorderFailed,
    RecorderProgress,
    RuleSummary,
    Status,
    TroubleEnded,
    TroubleStarted,
)


class StartInfo(msgspec.Struct, frozen=True):
    """The contents of the banner."""

    version: str
    routes: list[tuple[list[str], str, str]]
    """(listening addresses, upstream, upstream for gRPC or empty)."""
    recording: str
    redact: tuple[str, ...]
    """Redacted data, as words of a policy; empty for credentials only."""
    endless: bool = True
    """Whether the proxy runs until the user stops it."""
    forwards: list[list[str]] = msgspec.field(default_factory=list)
    """The listening addresses of each forward proxy."""
    spans_to: str = ""
    """The backend that spans are sent to; empty without one."""


def _redaction_summary(words: tuple[str, ...]) -> str:
    """Return the banner's words on the redaction."""
    if "none" in words:
        return "credentials are recorded too"
    if "metadata-only" in words:
        return "sizes, kinds, states, ids and times only: rules that need payloads are skipped"
    return f"credentials{' and the data named by the policy' if words else ''} are redacted"


class HookSummary(msgspec.Struct, frozen=True):
    """The result of a hook."""

    name: str
    outcome: str
    """`done`, or why it did not see all frames: `stopped`, `slow`, `died`, `failed`."""
    calls: int
    errors: int
    """Calls that failed."""
    behind_frames: int
    """Frames that the hook has not seen."""
    log: str
    resume_hint: str
    """Command that calls the hook for the whole recording."""


class Console(Protocol):
    """Output to the user of the proxy."""

    def show_start(self, start: StartInfo) -> None:
        """Show that the proxy listens."""

    def show_status(self, status: Status) -> None:
        """Show a message of the recorder."""

    def show_stopping(self, open_connections: int) -> None:
        """Show that the proxy accepts no more connections."""

    def show_draining(self, lag: int) -> None:
        """Show that the proxy is stopping and `lag` bytes of journal are still to be recorded."""

    def show_note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Show a line to the user; `loud`: as a warning."""

    def show_hook(self, summary: HookSummary) -> None:
        """Show the result of a hook that has ended."""

    def close(self) -> None:
        """Wait until all lines are printed, for a limited time."""


_CLOSE_SECONDS = 2.0
_INDENT = " " * len("09:41:07.123  ")
_MAX_SUMMARY_RULES = 20
"""Rules that the summary of a run lists."""
_STDOUT_FLUSH_SECONDS = 0.2
"""Seconds that lines on stderr wait for lines on stdout, so that a terminal shows both in order."""
_OUTCOMES = ("ok", "error", "cut", "refused")
_SUMMARY_COUNTS = (
    *("connections", "exchanges", *_OUTCOMES, "frames", "tasks"),
    *("findings", "error_findings", "warning_findings"),
)
_OUTCOME_COLOURS = {
    "ok": "32",
    "error": "31",
    "cut": "33",
    "refused": "31",
    "live": "36",
    "waits": "36",
}


class TextConsole:
    """Output as text."""

    def __init__(
        self, out: TextIO | None, err: TextIO | None, *, quiet: bool, verbose: bool = False
    ) -> None:
        self._out, self._err = Printer(out, _dropped_lines_note), Printer(err, _dropped_lines_note)
        self._quiet = quiet
        self._recording = ""
        self._has_many_routes = False
        """Whether there are several upstreams, so that each line names its upstream."""
        self._lowest = Severity.INFO if verbose else Severity.WARNING
        """Lowest severity of the findings that are printed."""
        self._batch = StatusBatch()
        self._repeats = FindingRepeats()
        self._last_exchange = 0
        """Exchange of the last line; 0 if that line is about none."""

    def show_start(self, start: StartInfo) -> None:
        """Print the banner: listeners, upstreams, the recording, and the next command."""
        for listening, upstream, grpc in start.routes:
            also = f" (HTTP/2 to {grpc})" if grpc else ""
            self._print_line(
                f"a2a-proxy {start.version} listens on {', '.join(listening)} and sends to "
                f"{upstream}{also}"
            )
        for listening in start.forwards:
            self._print_line(
                f"a2a-proxy {start.version} listens on {', '.join(listening)} as a forward proxy: "
                f"HTTP_PROXY=http://{listening[0]}"
            )
        self._has_many_routes = (
            bool(start.forwards) or len({upstream for _, upstream, _ in start.routes}) > 1
        )
        secrets = _redaction_summary(start.redact)
        self._recording = start.recording
        self._print_line(f"recording to {start.recording}; {secrets}")
        if start.spans_to:
            self._print_line(f"spans to {make_visible(start.spans_to)}")
        self._print_line(f"inspect it: {shell_line(*inspect_command(), start.recording)}")
        if start.endless:
            self._print_line("stop with Ctrl-C")

    def show_status(self, status: Status) -> None:
        """Print messages that concern the user; lines of one commit when the recorder has sent all
        of them."""
        if isinstance(status, ExchangeStatus | FindingStatus | GapClosedStatus):
            self._batch.add(status)
            return
        if isinstance(status, RecorderProgress):
            return  # may come between the lines of one commit
        self._print_batch()
        if isinstance(status, TroubleEnded):
            self.show_note(status.message, loud=False)
        elif isinstance(status, ReceiverStatus):
            self.show_note(_describe_receiver(status), loud=False)
        elif isinstance(status, LinesSkipped) and not self._quiet:
            self._out(_dropped_lines_note(status.count))
        elif isinstance(status, TroubleStarted | RecorderFailed):
            self.show_note(status.message, status.hint)
        elif isinstance(status, RecorderDone):
            self._print_summary(status)

    def show_stopping(self, open_connections: int) -> None:
        """Print the number of open connections."""
        if open_connections:
            self._print_line(
                f"stopping: {text.format_count(open_connections, 'connection')} still open"
            )

    def show_draining(self, lag: int) -> None:
        """Print the amount left to record."""
        left = f"{text.format_size(lag)} left to record" if lag else "the recorder is finishing"
        self._print_line(
            f"stopping: {left} (Ctrl-C again stops now; finish with `a2a-inspect recover`)"
        )

    def show_note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Print a warning or a plain line, with its hint."""
        self._print_line(f"a2a-proxy: {'warning: ' if loud else ''}{message}")
        if hint:
            self._print_line(f"a2a-proxy: hint: {hint}")

    def show_hook(self, summary: HookSummary) -> None:
        """Print the number of calls, failures and unseen frames."""
        calls = f"{summary.calls:,} call{'' if summary.calls == 1 else 's'}"
        failed = f", {summary.errors:,} of them failed" if summary.errors else ""
        if summary.outcome == "done" or not summary.behind_frames:
            self.show_note(
                f"hook {summary.name}: {calls}{failed}",
                f"see {summary.log}" if failed else "",
                loud=bool(failed),
            )
            return
        why = "is slow" if summary.outcome == "slow" else summary.outcome
        message = (
            f"hook {summary.name} {why}: {summary.behind_frames:,} frames behind, given up; "
            f"{calls}{failed}"
        )
        self.show_note(message, f"call it for the whole recording: {summary.resume_hint}")

    def close(self) -> None:
        """Wait until all lines are printed."""
        self._print_batch()
        self._out.flush(_CLOSE_SECONDS)
        self._err.flush(_CLOSE_SECONDS)

    def _print_batch(self) -> None:
        batch = self._batch.take()
        # Chosen first, because the line of an exchange names the rules of its repeated findings.
        # Whether the finding is printed in words, which happens once for each rule and severity.
        in_words = [
            not isinstance(each, FindingStatus)
            or (each.finding.severity >= self._lowest and self._repeats.is_first(each.finding))
            for each in batch
        ]
        for line in itertools.compress(batch, in_words):
            if isinstance(line, ExchangeStatus):
                if not self._quiet:
                    self._out(*self._format_exchange(line))
                    self._last_exchange = line.exchange.id
            elif isinstance(line, GapClosedStatus):
                self._print_below(line.missed.by, _healed_text(line), line.missed.healed)
            else:
                number = line.finding.exchange
                named = number != self._last_exchange or not number
                self._print_below(number, _finding_text(line, named=named), line.finding.at)

    def _print_below(self, exchange: int, words: str, at: int) -> None:
        """Print a line below its exchange, or with its time if the line above is about another
        one."""
        if exchange and exchange == self._last_exchange:
            self._out(f"{_INDENT}{words}")
        else:
            self._out(f"{text.format_time(at)}  {words}")
            self._last_exchange = 0

    def _format_exchange(self, exchange_status: ExchangeStatus) -> list[str | ColouredWord]:
        exchange = exchange_status.exchange
        word = text.outcome_label(exchange)
        parts: list[str | ColouredWord] = [
            text.format_time(exchange.started),
            ColouredWord(f"{word:7}", _OUTCOME_COLOURS[word]),
            f"#{exchange.id} {make_visible(text.exchange_title(exchange))}",
            text.binding_and_dialect(exchange),
            text.live_stream_label(exchange),
        ]
        if self._has_many_routes:
            parts.append(f"-> {make_visible(exchange_status.upstream)}")
        if exchange.task_id:
            parts.append(f"task {make_visible(text.shorten_id(exchange.task_id))}")
        if exchange.states:
            parts.append(make_visible(" > ".join(exchange.states)))
        if exchange.streaming:
            parts.append(text.format_count(exchange.events, "event"))
        parts += [text.latency_label(exchange), generations.requested_generations(exchange)]
        ending = exchange_status.ending or {}
        words = text.ending_words(exchange, ending.get("cause", ""), ending.get("summary", ""))
        parts.append(make_visible(words))
        if not exchange_status.live:
            parts.append(self._repeats.take_label(exchange.id))
        return parts

    def _print_summary(self, summary: RecorderDone) -> None:
        if not (summary.connections or summary.lost):
            self._print_line("nothing was recorded")
            return
        words = ("no" if summary.missing else "yes", summary.missing, summary.chosen)
        whole = f"capture complete: {'; '.join(filter(None, words))}"
        outcomes = ", ".join(
            f"{count} {name}" for name in _OUTCOMES if (count := getattr(summary, name))
        )
        exchanges = text.format_count(summary.exchanges, "exchange") + (
            f" ({outcomes})" if outcomes else ""
        )
        counts = (
            f"{exchanges}, {text.format_count(summary.frames, 'frame')}, "
            f"{text.format_count(summary.tasks, 'task')}"
        )
        self._print_line(f"recorded {counts}; {_count_findings(summary)}; {whole}")
        rules = [each for each in summary.rules if each.total.severity >= self._lowest]
        if any(
            each.total.count > 1 for each in rules
        ):  # otherwise each finding stands above in words
            for each in rules[:_MAX_SUMMARY_RULES]:
                self._print_line(_rule_line(each))
            if (rest := len(rules) - _MAX_SUMMARY_RULES) > 0:
                self._print_line(f"  and {text.format_count(rest, 'more rule')}")
        if any(each.total.rule.startswith("A2A-END-") for each in rules):
            self._print_line(
                f"why calls failed: {shell_line('a2a-inspect', 'why', self._recording)}"
            )
        if summary.findings:
            self._print_line(
                f"list the findings: {shell_line('a2a-inspect', 'check', self._recording)}"
            )

    def _print_line(self, line: str) -> None:
        """Print a line without colours on stderr."""
        self._out.flush(_STDOUT_FLUSH_SECONDS)
        self._err(line)


def _finding_text(status: FindingStatus, *, named: bool) -> str:
    """Return a finding in words; `named`: with the operation of its exchange."""
    finding = status.finding
    first = f"{finding.severity.name.lower():8}{finding.rule} {make_visible(status.title)}".rstrip()
    operation = make_visible(status.operation) if named else ""
    where = " ".join(filter(None, (text.finding_place(finding), operation)))
    actor = finding.evidence.get("actor", "")
    who = f"must act: {make_visible(actor)}" if actor else ""
    return "  ".join(filter(None, (first, where, who, make_visible(finding.summary))))


def _rule_line(summary: RuleSummary) -> str:
    """Return the findings of a rule in the summary of a run."""
    total = summary.total
    name = f"{total.rule} {make_visible(summary.title)}".rstrip()
    place = text.finding_place(total.first)
    count = text.format_count(total.count, "time") + (f", first in {place}" if place else "")
    return f"  {total.severity.name.lower():8}{name}  {count}"


def _describe_receiver(status: ReceiverStatus) -> str:
    receiver = make_visible(status.receiver)
    return f"notifications for {receiver} do not pass here; to record them: --webhooks :9100"


def _healed_text(status: GapClosedStatus) -> str:
    gap = status.missed
    first = f"{'healed':8}task {make_visible(text.shorten_id(status.task_id))}"
    how = generations.healed_label(gap, lambda _: make_visible(status.operation))
    lost = "dropped by us" if gap.reason is MissedReason.DROPPED else "missed"
    where = f"generation {generations.format_range(gap.first, gap.last)}, {lost} on #{gap.exchange}"
    return f"{first}  {where}: {how}"


def _count_findings(summary: RecorderDone) -> str:
    """Return a count such as `3 findings (1 error, 2 infos)`."""
    infos = summary.findings - summary.error_findings - summary.warning_findings
    counts = {"error": summary.error_findings, "warning": summary.warning_findings, "info": infos}
    counted = ", ".join(text.format_count(count, name) for name, count in counts.items() if count)
    return text.format_count(summary.findings, "finding") + (f" ({counted})" if counted else "")


def _dropped_lines_note(count: int) -> str:
    return (
        f"{_INDENT}{text.format_count(count, 'more line')} not shown; the recording has all of them"
    )


class JsonConsole:
    """Output as JSON: one object per line, with its type in `event`."""

    def __init__(self, out: TextIO | None, *, quiet: bool) -> None:
        self._out = Printer(out, lambda count: _encode_event("skipped", count=count))
        self._quiet = quiet

    def show_start(self, start: StartInfo) -> None:
        """Print `start`."""
        routes = [
            {"listen": a, "upstream": b, "upstream_grpc": c or None} for a, b, c in start.routes
        ]
        about = {
            "version": start.version,
            "routes": routes,
            "recording": start.recording,
            "redact": start.redact,
        }
        self._print_event(
            "start", **about, **({"forwards": start.forwards} if start.forwards else {})
        )

    def show_status(self, status: Status) -> None:
        """Print `exchange`, `finding`, `healed`, `skipped`, `trouble`, `error` or `summary`."""
        if isinstance(status, ExchangeStatus):
            if not self._quiet:
                self._print_event(
                    "exchange",
                    live=status.live,
                    upstream=status.upstream,
                    **exchange_object(status.exchange),
                    ending=status.ending,
                )
        elif isinstance(status, FindingStatus):
            self._print_event(
                "finding",
                operation=status.operation,
                title=status.title,
                **finding_object(status.finding),
            )
        elif isinstance(status, GapClosedStatus):
            self._print_event("healed", **healed_object(status))
        elif isinstance(status, LinesSkipped):
            self._print_event("skipped", count=status.count)
        elif isinstance(status, TroubleStarted):
            self._print_event("trouble", message=status.message, hint=status.hint)
        elif isinstance(status, TroubleEnded):
            self._print_event("note", message=status.message, hint="")
        elif isinstance(status, ReceiverStatus):
            self.show_note(_describe_receiver(status), loud=False)
        elif isinstance(status, RecorderFailed):
            self._print_event("error", message=status.message, hint=status.hint)
        elif isinstance(status, RecorderDone):
            counts = {name: getattr(status, name) for name in _SUMMARY_COUNTS}
            self._print_event(
                "summary",
                **counts,
                complete=not status.missing,
                missing=status.missing,
                lost_bytes=status.lost,
            )

    def show_stopping(self, open_connections: int) -> None:
        """Print `stopping`."""
        self._print_event("stopping", open_connections=open_connections)

    def show_draining(self, lag: int) -> None:
        """Print `draining`."""
        self._print_event("draining", behind_bytes=lag)

    def show_note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Print `warning` or `note`."""
        self._print_event("warning" if loud else "note", message=message, hint=hint)

    def show_hook(self, summary: HookSummary) -> None:
        """Print `hook`."""
        self._print_event("hook", **msgspec.to_builtins(summary))

    def close(self) -> None:
        """Wait until all lines are printed."""
        self._out.flush(_CLOSE_SECONDS)

    def _print_event(self, event: str, **fields: object) -> None:
        self._out(_encode_event(event, **fields))


def _encode_event(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields}, ensure_ascii=True)


def healed_object(status: GapClosedStatus) -> dict[str, object]:
    """Return a repaired gap in a task's generations as JSON with stable names."""
    gap = status.missed
    return {
        "task_id": status.task_id,
        "at": text.format_utc(gap.healed),
        "first": gap.first,
        "last": gap.last,
        "missed_at": text.format_utc(gap.at),
        "exchange": gap.exchange,
        "healed_by": gap.by or None,
        "operation": status.operation,
        "healed_at_generation": gap.generation,
    }


def make_console(options: ProxyArguments, out: TextIO | None = None) -> Console:
    """Return the console of the chosen log format, which prints calls to `out` (default: stdout).
    It prints findings of severity INFO if they make the run fail."""
    out = out or sys.stdout  # noqa: TID251 - for its printer
    if options.log_format == "json":
        return JsonConsole(out, quiet=options.quiet)
    verbose = options.verbose or options.fail_on == "info"
    return TextConsole(out, sys.stderr, quiet=options.quiet, verbose=verbose)  # noqa: TID251 - for its printer
