"""`a2a-proxy`: what was typed, nothing else. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from a2a_proxy import __version__
from a2a_proxy.cli.end_signals import INTERRUPTED
from a2a_proxy.cli.errors import EXIT_USAGE, UserError, print_error
from a2a_proxy.cli.follower_options import add_follower_options
from a2a_proxy.cli.help_sections import SectionedGroup
from a2a_proxy.cli.redaction_options import add_redaction_options
from a2a_proxy.cli.streams import discard, prepare_streams, terminal_gone

_HELP = """Relay A2A traffic untouched, and show and record every frame of it.

\b
  a2a-proxy --listen :9000 --upstream localhost:8000    relay, show, record
  a2a-proxy demo                                        with a built-in agent
  a2a-inspect                                           look at the newest one

One port takes gRPC, JSON-RPC, REST and SSE. Point the client at http://localhost:9000.
"""

_HELP_SECTIONS = (
    (
        "Relay",
        (
            *("listen", "upstream", "upstream_grpc", "rewrite_card", "learn_ports", "keep_host", "upstream_ca"),
            *("upstream_insecure", "propagate", "live"),
        ),
    ),
    ("Recording", ("record", "journal_max", "redact", "redact_policy", "keep_secrets")),
    ("Console and exit code", ("quiet", "log_format", "fail_on")),
    ("Metrics and hooks", ("metrics", "hook")),
    (
        "Traces (OpenTelemetry)",
        ("otlp", "otlp_protocol", "otlp_kind", "otlp_frames", "otlp_content", "otlp_compat", "otlp_segment"),
    ),
    ("Archive of many machines", ("archive", "archive_every", "archive_id")),
)

log_format = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How lines look."
)


@click.group(
    cls=SectionedGroup,
    option_parts=_HELP_SECTIONS,
    invoke_without_command=True,
    help=_HELP,
    context_settings={
        "auto_envvar_prefix": "A2A_PROXY",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.option(
    "--listen", "-l", multiple=True, metavar="[HOST]:PORT", help="Where clients connect; `:9000` is loopback."
)
@click.option("--upstream", "-u", multiple=True, metavar="HOST[:PORT]|URL", help="The agent; one for each --listen.")
@click.option(
    "--upstream-grpc", multiple=True, metavar="HOST:PORT", help="Where HTTP/2 goes, if the agent has two ports."
)
@click.option(
    "--rewrite-card",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="URLs in agent cards lead through the proxy: those of this agent in unsigned cards, all, or none.",
)
@click.option(
    "--learn-ports",
    metavar="PORTS",
    help="Further ports of the agent's host that its card may open where --listen is not loopback: 8001,9000-9010.",
)
@click.option("--keep-host", is_flag=True, help="Send Host and :authority on as they are, to remote upstreams too.")
@click.option(
    "--upstream-ca", type=click.Path(path_type=Path), metavar="FILE", help="Trust these CA certificates (PEM) as well."
)
@click.option("--upstream-insecure", is_flag=True, help="Do not verify the certificates of https upstreams.")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The recording; made, or added to. Else a new one in the state directory.",
)
@click.option(
    "--journal-max",
    default="4GiB",
    show_default=True,
    metavar="SIZE",
    help="Traffic not yet recorded takes at most this much disk.",
)
@click.option("--journal-segment", default="64MiB", hidden=True)
@click.option("--keep-secrets", is_flag=True, help="Record credentials as they are: --redact none.")
@add_redaction_options
@log_format
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    default="never",
    show_default=True,
    help="Exit with 1 where a finding was at least so grave.",
)
@click.option(
    "--live",
    type=click.Choice(["auto", "bidi", "1975", "2153"]),
    default="auto",
    show_default=True,
    help="Which proposal's messages SendLiveMessage carries; auto tells them apart.",
)
@add_follower_options
@click.option(
    "--propagate",
    is_flag=True,
    help="Make the proxy a part of each trace: requests go on with a traceparent of its own. Else they pass untouched.",
)
@click.option(
    "--metrics",
    metavar="[HOST]:PORT",
    help="Serve /metrics for Prometheus, /healthz and /readyz there; `:9464` is loopback.",
)
@click.option("--quiet", "-q", is_flag=True, help="No line per exchange; errors and the summary stay.")
@click.version_option(__version__, prog_name="a2a-proxy", message="%(prog)s %(version)s", help="Print the version.")
@click.pass_context
def cli(context: click.Context, /, **typed: Any) -> None:
    """See `_HELP`."""
    typed_here = _command_line_options(context)
    if context.invoked_subcommand is not None:
        _refuse_group_options(context.invoked_subcommand, typed_here)
        return
    if not (typed["listen"] or typed["upstream"] or typed_here):
        click.echo(context.get_help())
        return
    from a2a_proxy.cli.config import proxy_config
    from a2a_proxy.cli.run import run_proxy

    context.exit(run_proxy(proxy_config(**typed)))


def _command_line_options(context: click.Context) -> list[str]:
    """The options of this command that stand on the command line, not those of the environment."""
    source = context.get_parameter_source
    return [each.opts[0] for each in context.command.params if source(each.name or "") is ParameterSource.COMMANDLINE]


def _refuse_group_options(command: str, options: list[str]) -> None:
    """An option of the proxy would mean nothing there. Raises UserError."""
    if not options:
        return
    hint = f"put it after: a2a-proxy {command} --record FILE"
    if "--record" not in options:
        hint = f"leave it out; type `a2a-proxy {command} --help` for what can be typed"
    raise UserError(f"{' and '.join(options)} before {command}: no effect", hint)


@cli.command()
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="A2A_PROXY_RECORD",
    help="Where the recording goes.",
)
@click.option("--lossy", is_flag=True, help="One conversation more, of which the agent loses an event: find it.")
@click.pass_context
def demo(context: click.Context, record: Path | None, lossy: bool) -> None:
    """Record a built-in agent and client: streaming, artifacts in chunks, input-required."""
    from a2a_proxy.cli.demo import run_demo

    context.exit(run_demo(record, lossy=lossy))


@cli.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    short_help="Relay and record an agent that talks over stdin and stdout.",
)
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="FILE", envvar="A2A_PROXY_RECORD", help="The recording."
)
@click.option("--keep-secrets", is_flag=True, envvar="A2A_PROXY_KEEP_SECRETS", help="Record credentials as they are.")
@add_redaction_options
@click.option(
    "--journal-max",
    default="4GiB",
    show_default=True,
    metavar="SIZE",
    envvar="A2A_PROXY_JOURNAL_MAX",
    help="Traffic not yet recorded takes at most this much disk.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    default="never",
    show_default=True,
    envvar="A2A_PROXY_FAIL_ON",
    help="Where the agent exits with 0, exit with 1 if a finding was at least so grave.",
)
@add_follower_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def stdio(command: tuple[str, ...], **typed: Any) -> None:
    """Start COMMAND as an agent that talks over stdin and stdout, and record what passes.

    Bytes, stderr, signals and the exit code pass as without the proxy, which prints nothing of its own. Put
    `a2a-proxy stdio --` before the agent's command where its client starts it, or let `a2a-proxy wrap-card` do that.
    """
    from a2a_proxy.cli.stdio import run_stdio, stdio_config

    run_stdio(stdio_config(command=command, **typed))


@cli.command("wrap-card", short_help="Print an agent card whose stdio command goes through the proxy.")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="The recording of the wrapped agent.")
@click.option("--keep-secrets", is_flag=True, help="Credentials will be recorded as they are.")
@add_redaction_options
@click.option("--journal-max", metavar="SIZE", help="As of `a2a-proxy stdio`.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "info"]), help="As of `a2a-proxy stdio`.")
@click.argument("card", type=click.Path(path_type=Path, allow_dash=True))
@click.pass_context
def wrap_card(context: click.Context, /, card: Path, **typed: Any) -> None:
    """Print CARD (a file, or - for stdin) with `a2a-proxy stdio --` before the commands of its stdio interfaces.

    The options go into the command. All else stays byte for byte; so does a card that is signed or has no stdio
    command, with a word on stderr and exit code 1.
    """
    from a2a_proxy.cli.wrap_card import run_wrap_card, stdio_option_words

    context.exit(run_wrap_card(card, stdio_option_words(**typed)))


@cli.command(short_help="Serve a recording as a mock agent.")
@click.option("--listen", "-l", multiple=True, metavar="[HOST]:PORT", help="Where clients connect.  [default: :9001]")
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout instead.")
@click.option(
    "--match",
    type=click.Choice(["strict", "default", "by-operation", "loose"]),
    default="default",
    show_default=True,
    help="What of a request must be as recorded.",
)
@click.option(
    "--policy",
    multiple=True,
    metavar="OPERATION=POLICY",
    help="What a repeated request gets: sequence, last-sticky or by-progress.",
)
@click.option(
    "--speed", default="instant", show_default=True, metavar="instant|recorded|N", help="How the clock of pauses runs."
)
@click.option("--gap", type=click.FloatRange(0), metavar="MS", help="This pause before each thing the agent says.")
@click.option("--max-gap", type=click.FloatRange(0), metavar="MS", help="No pause is longer.")
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a stream waits for what its client said in the recording; 0 for ever.",
)
@click.option("--keep-times", is_flag=True, help="Leave timestamps as recorded; they are moved to now otherwise.")
@click.option("--lenient", is_flag=True, help="Go on where a client says something else within a stream, and say so.")
@click.option(
    "--fault",
    multiple=True,
    metavar="FAULT",
    help='Go wrong on purpose: "drop #3.4", "stall 30s before #3.6" and more.',
)
@click.option("--session", type=int, metavar="N", help="Only this session of the recording.")
@click.option("--agent", default="", metavar="HOST:PORT", help="Only what this agent said, of several.")
@click.option("--allow-incomplete", is_flag=True, help="Serve a recording of which something is missing.")
@click.option("--allow-redacted", is_flag=True, help="Deliver labels where credentials stood.")
@click.option("--keep-card", is_flag=True, help="Serve the agent card as recorded, URLs included.")
@click.option(
    "--add-interface",
    multiple=True,
    type=click.Choice(["jsonrpc", "rest", "grpc"]),
    help="Let the agent card list this binding though the recorded one does not.",
)
@click.option("--fail-on-miss", is_flag=True, help="Exit with 1 if a client asked what the recording has no answer to.")
@click.option("--fail-unused", is_flag=True, help="Exit with 1 if nobody asked for one of the recorded calls.")
@log_format
@click.option("--quiet", "-q", is_flag=True, help="No line per call; misses and the summary stay.")
@click.argument("recording", type=click.Path(path_type=Path))
@click.pass_context
def replay(context: click.Context, /, recording: Path, **typed: Any) -> None:
    """Serve RECORDING (or a cassette) as a mock agent: gRPC, JSON-RPC and REST on one port, with its agent card.

    Recorded on one binding it is served on the others too. What the recording has no answer to is refused, and told
    with the nearest recorded call and what differs from it.
    """
    from a2a_proxy.cli.replay import replay_config, run_replay

    context.exit(run_replay(replay_config(recording=recording, **typed)))


@cli.command(short_help="Send a recording's client side to a live agent, and compare the answers.")
@click.option("--upstream", "-u", default="", metavar="HOST[:PORT]|URL", help="The agent.")
@click.option("--upstream-grpc", default="", metavar="HOST:PORT", help="Its gRPC port, where its card does not say it.")
@click.option(
    "--binding", type=click.Choice(["jsonrpc", "rest", "grpc", "stdio"]), help="Send the calls so, not as recorded."
)
@click.option("--dialect", type=click.Choice(["0.1", "0.2", "0.3", "1.0", "1.1"]), help="Say them so, not as recorded.")
@click.option("--filter", "-f", "where", default="", metavar="EXPR", help="Only the calls that match: 'task:b2a4'.")
@click.option(
    "--speed", default="instant", show_default=True, metavar="instant|recorded|N", help="Pauses: none, all, divided."
)
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="SECONDS", help="Of silence in a call.")
@click.option(
    "--header",
    "-H",
    multiple=True,
    metavar="'NAME: VALUE'",
    allow_from_autoenv=False,
    help="Sent in the place of the recorded one; also by A2A_PROXY_DRIVE_HEADERS, one a line.",
)
@click.option("--strict", is_flag=True, help="Defaults left out, other chunks and another order count as well.")
@click.option("--shape", is_flag=True, help="Only kinds, states, order and structure count; model text may differ.")
@click.option("--ignore", multiple=True, metavar="PATH", help="What is there does not count: text, '$.task.history'.")
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True
)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="The report goes there as well.")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Keep the recording of the drive.")
@click.option("--allow-incomplete", is_flag=True, help="Drive what there is of a recording that lacks something.")
@click.option("--upstream-ca", type=click.Path(path_type=Path), metavar="FILE", help="Trust these CA certificates too.")
@click.option("--upstream-insecure", is_flag=True, help="Do not verify the agent's certificate.")
@click.argument("recording", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.pass_context
def drive(context: click.Context, /, **typed: Any) -> None:
    """Send the client side of RECORDING to a live agent, and tell what it answers otherwise than it did.

    Each call waits for what it waited for in the recording; ids that the agent makes now take the place of recorded
    ones. What differs between any two runs (ids, times, ports) does not count. COMMAND is a stdio agent.

    \b
    Exit code: 0 the same, 1 different, 2 it cannot be driven,
    3 a recording that is not complete.
    """
    from a2a_proxy.cli.drive.options import drive_command_options
    from a2a_proxy.cli.drive.run import run_drive

    context.exit(run_drive(drive_command_options(**typed)))


def main() -> None:
    """Run `a2a-proxy` and exit with its code."""
    sys.exit(run_cli("a2a-proxy", cli))


def run_cli(program: str, command: click.Command) -> int:
    """Run `command`; the one place where errors become exit codes."""
    prepare_streams()
    code = 0
    try:
        code = _invoke_command(program, command)
        sys.stdout.flush()  # what fails at the end of the interpreter cannot be told any more
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as wrong:
        gone = terminal_gone(wrong)
        discard(sys.stdout)
        if not gone:
            where = f"cannot use {wrong.filename}" if wrong.filename else "cannot write the output"
            print_error(
                program, f"{where}: {(wrong.strerror or str(wrong)).lower()}", "check its disk and its permissions"
            )
        code = (code or INTERRUPTED) if gone else EXIT_USAGE
    try:
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
    return code


def _invoke_command(program: str, command: click.Command) -> int:
    """Raises OSError: mostly of an output that takes nothing."""
    try:
        code = command.main(prog_name=program, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        return 0
    except click.ClickException as mistake:
        context = getattr(mistake, "ctx", None)
        path = context.command_path if context is not None else program
        print_error(
            program, _lower_case_message(mistake.format_message()), f"type `{path} --help` for what can be typed"
        )
        return EXIT_USAGE
    except UserError as mistake:
        print_error(program, mistake.message, mistake.hint)
        return mistake.code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:
        # What click makes of a reader that has seen enough (`| head`): that is success.
        return 0
    return code if isinstance(code, int) else 0


def _lower_case_message(message: str) -> str:
    """Click speaks in sentences; here messages start in lower case and end without a full stop."""
    text = " ".join(message.split()).rstrip(".")
    return text[:1].lower() + text[1:]
