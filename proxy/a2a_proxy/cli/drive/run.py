"""The `drive` command: read the recording, reach the agent, drive it through a proxy, compare,
report."""

import asyncio
import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import proxy_config
from a2a_proxy.cli.console import HookSummary, StartInfo
from a2a_proxy.cli.drive.agent import (
    AgentAddress,
    connect_stdio_agent,
    find_agent,
    offered_dialects,
    wait_until_recorded,
)
from a2a_proxy.cli.drive.options import HEADERS_VARIABLE, DriveCommandOptions
from a2a_proxy.cli.drive.report import FORMATS, DriveReport, text_lines
from a2a_proxy.cli.end_signals import INTERRUPTED, end_signals
from a2a_proxy.cli.errors import print_error
from a2a_proxy.cli.run import ProxyRun
from a2a_proxy.drive.compare_policy import add_skipped, apply_matchers, apply_policy
from a2a_proxy.drive.grpc import GrpcTransport
from a2a_proxy.drive.http import HttpTransport
from a2a_proxy.drive.load import load_plan
from a2a_proxy.drive.plan import DrivePlan, PlannedCall
from a2a_proxy.drive.request import CallTransport, RequestedTarget, header_labels
from a2a_proxy.drive.route import DriveRoute, DriveRoutes
from a2a_proxy.drive.run import Drive, DriveOptions
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding
from a2a_proxy.present.output import print_document, print_line, print_note, terminal_width
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recorder.status import RecorderFailed, Status, TroubleStarted
from a2a_proxy.recording.cassette.file import is_cassette, open_recording_or_cassette
from a2a_proxy.recording.difference.runs import RunDifference, compare_runs, take_run
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.store.corruption_guard import guard_corruption
from a2a_proxy.relay.run import run_loop
from a2a_proxy.relay.tls import Trust

DIFFERENT, INCOMPLETE = 1, 3
"""Exit codes of a drive with differences, and of a recording that is not complete."""


def run_drive(options: DriveCommandOptions) -> int:
    """Drive, write the report, and return the exit code.

    Raises:
        UserError: the recording cannot be driven, or the agent cannot be reached.
    """
    refuse_overwriting(options)
    with open_drive_recording(options.recording) as recording:
        rows = (
            recording.find_exchanges(options.where) if options.where else recording.read_exchanges()
        )
        plan = load_plan(recording, rows, options.target)
        _check_plan(plan, options, recording.path)
        with recording_file(options) as file:
            driven = run_loop(drive_agent(plan, options, file))
            report = compare_drive(recording, plan, driven, options, file)
    _write_report(report, options)
    if report.incomplete:
        return INCOMPLETE
    return DIFFERENT if report.difference.count else 0


def _check_plan(plan: DrivePlan, options: DriveCommandOptions, path: str) -> None:
    """Raises UserError if there is no call to drive, or the recording is not complete."""
    if plan.missing and not options.allow_incomplete:
        more = f" (and {len(plan.missing) - 1} more)" if len(plan.missing) > 1 else ""
        hint = "to drive it anyway: --allow-incomplete"
        raise UserError(f"the recording is not complete: {plan.missing[0]}{more}", hint, INCOMPLETE)
    if not plan.steps:
        why = f": {plan.skipped[0].place} {plan.skipped[0].reason}" if plan.skipped else ""
        hint = (
            f"list the recorded calls: {shell_line('a2a-inspect', 'ls', path)}"
            if not options.where
            else "leave --filter out, or choose other calls"
        )
        raise UserError(f"there is no call to drive{why}", hint)
    check_pipe(plan, options, ("a2a-proxy", "drive", str(options.recording)))


def check_pipe(plan: DrivePlan, options: DriveCommandOptions, words: tuple[str, ...]) -> None:
    """Raises UserError if a call needs the pipe of a stdio agent; `words` are the command line
    without its options."""
    piped = None if options.command else _first_stdio_call(plan, options.target)
    if piped is not None:
        title = f"{piped.place} {piped.exchange.operation or piped.exchange.method}"
        raise UserError(
            f"{title} was recorded over stdio, which --upstream cannot carry",
            "send such calls over another binding: --binding jsonrpc; or start the stdio agent: "
            f"{shell_line(*words)} -- COMMAND",
        )


def _first_stdio_call(plan: DrivePlan, target: RequestedTarget) -> PlannedCall | None:
    """Return the first call that needs the pipe of a stdio agent, or None."""
    return next(
        (step for step in plan.steps if target.target_of(step).binding is Binding.STDIO), None
    )


DriveFactory = Callable[[DrivePlan, dict[Binding, CallTransport], DriveOptions], Drive]
"""Creates a drive from its plan, transports and options."""


class DriveResult(msgspec.Struct):
    """The outcome of a drive."""

    drive: Drive
    pid: int
    """Id of the process that recorded the session."""
    notes: list[str]


async def drive_agent(
    plan: DrivePlan, options: DriveCommandOptions, file: Path, make_drive: DriveFactory = Drive
) -> DriveResult:
    """Drive the agent. Raises UserError, also if a signal ends the drive."""
    drive = _drive_stdio_agent if options.command else _drive_network_agent
    work = asyncio.ensure_future(drive(plan, options, file, make_drive))
    for number in end_signals():
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise _make_stopped_error() from None


async def _drive_network_agent(
    plan: DrivePlan, options: DriveCommandOptions, file: Path, make_drive: DriveFactory
) -> DriveResult:
    """Drive an agent on the network through a proxy. Raises UserError."""
    trust = Trust(options.upstream_ca, options.upstream_insecure)
    reached = await find_agent(options.upstream, options.upstream_grpc, trust)
    _note_dialects(plan, options.target, reached)
    arguments = ProxyArguments(
        listen=("127.0.0.1:0",) * len(reached.upstreams),
        upstream=tuple(each.text for each in reached.upstreams),
        upstream_grpc=(reached.grpc.text,) * len(reached.upstreams)
        if reached.grpc is not None
        else (),
        record=file,
        quiet=True,
        redact=(
            *(f"header:{name}" for name in sorted(options.credentials.replaced_names(plan.steps))),
            *options.redact,
        ),
        upstream_ca=options.upstream_ca,
        upstream_insecure=options.upstream_insecure,
    )
    drives: list[Drive] = []

    async def work(addresses: list[str]) -> None:
        drives.append(
            await _run_calls(plan, options, _open_transports(plan, reached, addresses), make_drive)
        )

    proxy = ProxyRun(proxy_config(arguments), work, WarningConsole())
    proxy.command = _redact_command(proxy.command, options)
    await proxy.run()
    if not drives:
        raise _make_stopped_error()
    return DriveResult(drives[0], os.getpid(), reached.notes)


def _redact_command(words: tuple[str, ...], options: DriveCommandOptions) -> tuple[str, ...]:
    """Return the command line without the values of headers, whatever their names, and other
    secrets."""
    hidden, credentials = list(words), options.credentials
    given = [
        data.decode()
        for data in (*(value for _, value in credentials.headers), *credentials.secrets.values())
    ]
    for value in (*given, *options.hidden_values):
        hidden = [word.replace(value, "redacted") if value else word for word in hidden]
    return tuple(hidden)


async def _drive_stdio_agent(
    plan: DrivePlan, options: DriveCommandOptions, file: Path, make_drive: DriveFactory
) -> DriveResult:
    wire = connect_stdio_agent(options.command, file)
    drive = await _run_calls(plan, options, {Binding.STDIO: wire}, make_drive)
    if wire.pid:
        await wait_until_recorded(file, wire.pid)
    return DriveResult(drive, wire.pid, [])


def _make_stopped_error() -> UserError:
    return UserError("stopped before all calls were sent", "nothing was compared", INTERRUPTED)


async def _run_calls(
    plan: DrivePlan,
    options: DriveCommandOptions,
    wires: dict[Binding, CallTransport],
    make_drive: DriveFactory,
) -> Drive:
    """Send all calls and close their transports."""
    credentials = options.credentials.for_plan(plan.steps)
    drive = make_drive(
        plan, wires, DriveOptions(options.speed, options.target, options.timeout, credentials)
    )
    try:
        await drive.run()
    finally:
        for wire in dict.fromkeys(wires.values()):
            await wire.close()
    return drive


def _open_transports(
    plan: DrivePlan, agent: AgentAddress, addresses: list[str]
) -> dict[Binding, CallTransport]:
    authorities = [upstream.authority for upstream in agent.upstreams]
    default = DriveRoute(addresses[0], authorities[0])
    binding_routes = {
        binding: DriveRoute(addresses[at], authorities[at], path)
        for binding, (at, path) in agent.interfaces.items()
    }
    if agent.grpc is not None:
        binding_routes[Binding.GRPC] = DriveRoute(addresses[0], agent.grpc.authority)
    routes = DriveRoutes(default, binding_routes, plan.paths)
    http, grpc = HttpTransport(routes), GrpcTransport(routes)
    return dict.fromkeys((Binding.JSONRPC, Binding.REST, Binding.CARD, Binding.OTHER), http) | {
        Binding.GRPC: grpc
    }


def _note_dialects(plan: DrivePlan, target: RequestedTarget, agent: AgentAddress) -> None:
    """Note dialects and bindings of the calls that the live agent's card does not offer."""
    spoken = {
        (speech.binding, speech.dialect)
        for speech in map(target.target_of, plan.steps)
        if speech.operation
    }
    for binding, dialect in sorted(spoken):
        dialects = offered_dialects(agent, binding)
        if (
            dialects
            and str(dialect) not in dialects
            and not (str(dialect) == "1.1" and "1.0" in dialects)
        ):
            offers = ", ".join(dialects)
            hint = f"to use it: --dialect {dialects[-1]}"
            agent.notes.append(
                f"calls speak {dialect} over {binding}, the agent's card offers {offers}; {hint}"
            )
        missing = binding not in agent.versions and binding in (
            Binding.JSONRPC,
            Binding.REST,
            Binding.GRPC,
        )
        if missing and agent.versions:
            offers = ", ".join(sorted(map(str, agent.versions)))
            hint = f"to use it: --binding {min(map(str, agent.versions))}"
            agent.notes.append(f"calls go over {binding}, the agent's card offers {offers}; {hint}")


def compare_drive(
    recording: Recording,
    plan: DrivePlan,
    result: DriveResult,
    options: DriveCommandOptions,
    file: Path,
) -> DriveReport:
    """Return the report with the differences between the recorded calls and the live ones. Raises
    UserError."""
    with open_drive_recording(file) as live:
        session = find_live_session(live, result.pid)
        left = take_run(
            recording, (step.row for step in plan.steps if step.number not in result.drive.skipped)
        )
        difference = compare_runs(left, take_run(live, live.read_exchanges(session.id)))
        difference = add_skipped(
            difference, [plan.steps[number].row for number in sorted(result.drive.skipped)]
        )
        without_credentials = frozenset(
            step.row.key for step in plan.steps if _withheld_headers(step, options)
        )
        given_headers = options.credentials.replaced_names(plan.steps)
        difference = apply_policy(
            difference,
            msgspec.structs.replace(
                options.compare_policy,
                calls_without_credentials=without_credentials,
                given_headers=given_headers,
            ),
        )
        if matchers := options.compare_policy.matchers:
            matches = [
                apply_matchers(each, recording, live, matchers) for each in difference.matches
            ]
            difference = RunDifference(matches, difference.tasks, difference.cut)
    return DriveReport(
        str(options.recording),
        shlex.join(options.command) or options.upstream,
        difference,
        tuple(result.drive.remarks),
        plan.skipped,
        (*result.notes, *_note_labels(plan, options)),
        str(options.record) if options.record is not None else "",
        session.missing_text,
    )


def find_live_session(live: Recording, pid: int) -> SessionRow:
    """Return the session that this process has recorded. Raises UserError if it is missing."""
    sessions = [session for session in live.read_sessions() if session.facts.pid == pid]
    if not sessions:
        raise UserError("the drive was not recorded", "try again with --record FILE")
    return sessions[-1]


def _note_labels(plan: DrivePlan, options: DriveCommandOptions) -> Iterator[str]:
    """Yield notes on credentials that could not be sent, because the recording holds only their
    labels."""
    names: dict[str, list[str]] = {}
    for step in plan.steps:
        labels = {
            name: label
            for name, label in header_labels(step)
            if label.encode() not in options.credentials.secrets
        }
        for name in _withheld_headers(step, options):
            names.setdefault(name.lower(), []).append(labels[name.lower()])
    for name, each in names.items():
        calls = "1 call was" if len(each) == 1 else f"{len(each)} calls were"
        kinds = list(dict.fromkeys(each))
        what = (
            "a label, not the credential"
            if len(kinds) == 1
            else f"one of {len(kinds)} labels, not the credential"
        )
        yield (
            f"the recorded {name} is {what}: {calls} sent without it; to send one: --header "
            f"'{name if len(kinds) == 1 else kinds[0]}: VALUE', or {HEADERS_VARIABLE} in the "
            "environment"
        )
    bodies = sum(
        any(turn.frame is not None and turn.frame.redacted for turn in step.turns)
        for step in plan.steps
    )
    if bodies:
        requests = "1 request contains" if bodies == 1 else f"{bodies} requests contain"
        yield f"{requests} labels in place of credentials, and the agent got the labels"


def _withheld_headers(step: PlannedCall, options: DriveCommandOptions) -> tuple[str, ...]:
    """Return the names of headers that a call is sent without."""
    return options.credentials.apply_to(step.exchange.request_headers)[1]


@contextlib.contextmanager
def recording_file(options: DriveCommandOptions) -> Iterator[Path]:
    """Yield the file of the drive's recording; it is deleted afterwards unless the user named
    it."""
    if options.record is not None:
        yield options.record
        return
    folder = Path(tempfile.mkdtemp(prefix="a2a-drive-"))
    file = folder / "live.a2a.db"
    try:
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # Delete the journal of an interrupted drive, because its recording is deleted.
        with contextlib.suppress(OSError):
            for left in file_layout.find_leftovers():
                if left.session.recording == str(file.absolute()):
                    file_layout.delete_journal(left.path)


@contextlib.contextmanager
def open_drive_recording(path: Path) -> Iterator[Recording]:
    """Yield the opened recording. Raises UserError if it cannot be read."""
    with open_recording_or_cassette(path) as recording, guard_corruption(recording):
        yield recording


def refuse_overwriting(options: DriveCommandOptions) -> None:
    """Raises UserError if the recording of the drive or the report would replace the recording that
    is driven."""
    for option, path in (("--record", options.record), ("--output", options.output)):
        with contextlib.suppress(OSError):  # one of the two does not exist
            if path is not None and path.samefile(options.recording):
                raise UserError(
                    f"{option} {path} is the recording that is driven", "choose another file"
                )
    refuse_cassette(options.record)


def refuse_cassette(record: Path | None) -> None:
    """Raises UserError if the recording of the drive would be appended to a cassette."""
    if record is not None and record.exists() and is_cassette(record):
        raise UserError(
            f"{record} is a cassette, which cannot be appended to",
            "choose another file: --record FILE",
        )


def _write_report(report: DriveReport, options: DriveCommandOptions) -> None:
    format_lines = FORMATS[options.output_format]
    print_text = print_line if options.output_format == "text" else print_document
    width = terminal_width()
    if options.output is None or str(options.output) == "-":
        for line in format_lines(report, width):
            print_text(line)
        return
    try:
        with options.output.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in format_lines(report, 0))
    except OSError as wrong:
        reason = (wrong.strerror or str(wrong)).lower()
        raise UserError(
            f"cannot write {options.output}: {reason}", "choose another file: --output FILE"
        ) from wrong
    for line in text_lines(report, width):
        print_line(line)


class WarningConsole:
    """The console of a drive's proxy, which prints only warnings: the rest is in the report."""

    def show_start(self, start: StartInfo) -> None:
        """Print nothing: the address is not needed."""

    def show_status(self, status: Status) -> None:
        """Print problems."""
        if isinstance(status, TroubleStarted | RecorderFailed):
            print_error("a2a-proxy", status.message, status.hint)

    def show_stopping(self, open_connections: int) -> None:
        """Print nothing: the drive is over."""

    def show_draining(self, lag: int) -> None:
        """Print nothing: the wait is short."""

    def show_note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        """Print a warning."""
        if loud:
            print_note(f"a2a-proxy: warning: {message}")
            if hint:
                print_note(f"a2a-proxy: hint: {hint}")

    def show_hook(self, summary: HookSummary) -> None:
        """Print nothing: a drive has no hooks."""

    def close(self) -> None:
        """Do nothing: all lines are printed."""
