"""`a2a-proxy`: the definitions of its commands and options. Heavy imports happen inside the
commands."""

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from a2a_proxy import __version__
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.completion import completion
from a2a_proxy.cli.end_signals import INTERRUPTED
from a2a_proxy.cli.errors import print_error
from a2a_proxy.cli.help_sections import FILE, SectionedGroup
from a2a_proxy.cli.options import add_options, given_options, option_sections, option_words
from a2a_proxy.cli.streams import discard_output, prepare_streams, terminal_gone
from a2a_proxy.model.errors import EXIT_USAGE, UserError
from a2a_proxy.system_errors import hint_for

_Command = TypeVar("_Command", bound=Callable[..., Any])

_HELP = """Relay A2A traffic unchanged, and show and record every frame.

\b
  a2a-proxy --listen :9000 --upstream localhost:8000    relay, show, record
  a2a-proxy demo                                        with a built-in agent
  a2a-inspect                                           inspect the newest one

One port takes gRPC, JSON-RPC, REST and SSE. Point the client at http://localhost:9000.
"""

_TOPICS = {
    "ca": "tls",
    "demo": "learn-record",
    "drive": "drive",
    "replay": "replay",
    "run": "run",
    "send": "drive",
    "stdio": "stdio",
    "wrap-card": "stdio",
}
"""Pages of the manual that the help of commands names."""
_AGENT_OPTIONS = (
    click.option(
        "--upstream", "-u", default="", metavar="HOST[:PORT]|URL", help="Address of the agent."
    ),
    click.option(
        "--upstream-grpc",
        default="",
        metavar="HOST:PORT",
        help="Its gRPC address, if its card does not list one.",
    ),
    click.option(
        "--header",
        "-H",
        multiple=True,
        metavar="'NAME: VALUE'",
        allow_from_autoenv=False,
        help="Send this header instead of the recorded one; also in A2A_PROXY_DRIVE_HEADERS, one "
        "per line.",
    ),
    click.option(
        "--binding",
        type=click.Choice(["jsonrpc", "rest", "grpc", "stdio"]),
        help="Send with this binding instead of the recorded one.",
    ),
    click.option(
        "--dialect",
        type=click.Choice(["0.1", "0.2", "0.3", "1.0", "1.1"]),
        help="Send in this dialect instead of the recorded one.",
    ),
    click.option(
        "--timeout",
        type=float,
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Silence after which a call ends.",
    ),
    add_options(
        ProxyArguments,
        names=("upstream_ca", "upstream_insecure"),
        helps={"upstream_insecure": "Do not verify the agent's certificate."},
        environment=False,
    ),
)


def add_agent_options(command: _Command) -> _Command:
    """Add the options of a command that sends recorded calls to a live agent."""
    for add in reversed(_AGENT_OPTIONS):
        command = add(command)
    return command


@click.group(
    cls=SectionedGroup,
    option_parts=option_sections(ProxyArguments),
    topics=_TOPICS,
    invoke_without_command=True,
    help=_HELP,
    epilog="More: a2a-inspect help options",
    context_settings={
        "auto_envvar_prefix": "A2A_PROXY",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@add_options(ProxyArguments)
@click.version_option(
    __version__, prog_name="a2a-proxy", message="%(prog)s %(version)s", help="Print the version."
)
@click.pass_context
def cli(context: click.Context, /, **typed: Any) -> None:
    """Run the proxy, or show the help (`_HELP`)."""
    typed_here = [each.opts[0] for each in given_options(context)]
    if context.invoked_subcommand is not None:
        _refuse_group_options(context.invoked_subcommand, typed_here)
        return
    if not (typed["listen"] or typed["upstream"] or typed["forward"] or typed_here):
        from a2a_proxy.present.output import print_document

        print_document(context.get_help())
        return
    from a2a_proxy.cli.config import proxy_config
    from a2a_proxy.cli.run import run_proxy

    context.exit(run_proxy(proxy_config(ProxyArguments(**typed))))


def _refuse_group_options(command: str, options: list[str]) -> None:
    """Raises UserError if options of the proxy precede a subcommand, where they have no effect."""
    if not options:
        return
    hint = f"put it after: a2a-proxy {command} --record FILE"
    if "--record" not in options:
        hint = f"leave it out; the options are listed by: a2a-proxy {command} --help"
    raise UserError(f"{' and '.join(options)} before {command}: no effect", hint)


@cli.command()
@add_options(ProxyArguments, command="demo")
@click.option(
    "--lossy", is_flag=True, help="Add a conversation in which the agent loses an event: find it."
)
@click.pass_context
def demo(context: click.Context, record: Path | None, lossy: bool) -> None:
    """Record a built-in agent and client: streaming, artifacts in chunks, input-required.

    One call fails on purpose: it asks for a task that does not exist.
    """
    from a2a_proxy.cli.demo import run_demo

    context.exit(run_demo(record, lossy=lossy))


@cli.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    short_help="Relay and record an agent that talks over stdin and stdout.",
)
@add_options(
    ProxyArguments,
    command="stdio",
    helps={
        "fail_on": "If the agent exits with 0, exit with 1 if a finding has at least this severity."
    },
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def stdio(command: tuple[str, ...], **typed: Any) -> None:
    """Start COMMAND as an agent that talks over stdin and stdout, and record the traffic.

    Bytes, stderr, signals and the exit code are relayed unchanged, and the proxy prints nothing of
    its own. Put `a2a-proxy stdio --` before the agent's command where its client starts it, or let
    `a2a-proxy wrap-card` do that.
    """
    from a2a_proxy.cli.stdio import run_stdio, stdio_config

    run_stdio(stdio_config(command, ProxyArguments(**typed)))


@cli.command(
    "run",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    short_help="Run a command, and record the A2A calls between all its processes.",
)
@add_options(
    ProxyArguments,
    command="run",
    helps={
        "intercept": "Read TLS to these hosts: HOST, *.example.com, HOST:PORT, private (the "
        "default) or *.",
        "passed": "Leave TLS to these hosts unread.",
        "upstream_insecure": "Do not verify the agents' certificates.",
        "upstream_proxy": "Reach agents on other machines through this HTTP proxy, instead of "
        "that of HTTPS_PROXY or HTTP_PROXY.",
        "propagate": "Make the proxy a part of each trace, as for `a2a-proxy --propagate`.",
        "fail_on": "If the command exits with 0, exit with 1 if a finding has at least this "
        "severity.",
    },
)
@click.option(
    "--java",
    is_flag=True,
    help="Lead the traffic of JVMs through the proxy too; each prints a line about "
    "JAVA_TOOL_OPTIONS then.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(command: tuple[str, ...], *, java: bool, **typed: Any) -> None:
    """Run COMMAND, and record the A2A calls that its processes make through HTTP_PROXY.

    The variables are set for the command alone. Its streams, signals and exit code are unchanged;
    the proxy prints to stderr. Connections past the proxy are reported (Linux).
    """
    from a2a_proxy.cli.command.run import run_command

    run_command(command, ProxyArguments(**typed), java=java)


@cli.command(
    "wrap-card", short_help="Print an agent card whose stdio command is wrapped in the proxy."
)
@add_options(
    ProxyArguments,
    command="wrap-card",
    helps=dict.fromkeys(("journal_max", "fail_on"), "As in `a2a-proxy stdio`."),
    environment=False,
)
@click.argument("card", type=click.Path(path_type=Path, allow_dash=True))
@click.pass_context
def wrap_card(context: click.Context, /, card: Path, **typed: Any) -> None:
    """Print CARD (a file, or - for stdin) with `a2a-proxy stdio --` before the commands of its
    stdio interfaces.

    The options are added to the command. All other bytes stay unchanged. A card that is signed or
    has no stdio command is printed unchanged, with a message on stderr and exit code 1.
    """
    from a2a_proxy.cli.wrap_card import check_stdio_options, run_wrap_card

    check_stdio_options(ProxyArguments(**typed))
    context.exit(run_wrap_card(card, option_words(context)))


@cli.group(
    cls=SectionedGroup,
    invoke_without_command=True,
    short_help="Show the authority for TLS, and export it.",
)
@click.pass_context
def ca(context: click.Context) -> None:
    """Show the authority with which --tls certifies the proxy to clients; created on first use.

    \b
      a2a-proxy ca export -o FILE    for clients on other machines
      eval "$(a2a-proxy ca env)"     for programs started in this shell

    Its key stays on this machine (extra: tls).
    """
    if context.invoked_subcommand is None:
        from a2a_proxy.cli.authority import show_authority
        from a2a_proxy.present.output import print_line

        for line in show_authority():
            print_line(line)


@ca.command()
@click.option("--output", "-o", type=FILE, metavar="FILE", help="Write it to this file.")
def export(output: Path | None) -> None:
    """Print the authority's certificate (PEM), never the key."""
    from a2a_proxy.cli.authority import export_certificate
    from a2a_proxy.present.output import print_line

    for line in export_certificate(output):
        print_line(line)


@ca.command()
@click.option(
    "--forward",
    metavar="[HOST]:PORT",
    help="Also lead all traffic to the forward proxy at this address.",
)
def env(forward: str | None) -> None:
    """Print shell lines that make programs trust the authority: eval "$(a2a-proxy ca env)".

    Authorities that are trusted already stay trusted.
    """
    from a2a_proxy.cli.authority import environment_lines
    from a2a_proxy.present.output import print_document

    print_document(environment_lines(forward), end="")


@ca.command()
def renew() -> None:
    """Replace the authority by a new one, which clients must trust anew."""
    from a2a_proxy.cli.authority import replace_authority
    from a2a_proxy.present.output import print_line

    for line in replace_authority():
        print_line(line)


@cli.command(short_help="Serve a recording as a mock agent.")
@click.option(
    "--listen",
    "-l",
    multiple=True,
    metavar="[HOST]:PORT",
    help="Address for clients.  [default: :9001]",
)
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout instead.")
@click.option(
    "--match",
    type=click.Choice(["strict", "default", "by-operation", "loose"]),
    default="default",
    show_default=True,
    help="How closely a request must match the recorded one.",
)
@click.option(
    "--match-on",
    multiple=True,
    metavar="NAME|MODULE:FUNCTION",
    help="Compare only these parts of a request, or by your own function: --match-on text,task.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="Do not compare this part of a request: '$.message.metadata'.",
)
@click.option(
    "--normalize",
    multiple=True,
    metavar="REGEX",
    help="Take all texts that this matches for equal: 'order-[0-9]+'.",
)
@click.option(
    "--policy",
    multiple=True,
    metavar="OPERATION=POLICY",
    help="The answers to repeated requests: sequence, last-sticky or by-progress.",
)
@click.option(
    "--speed",
    default="instant",
    show_default=True,
    metavar="instant|recorded|N",
    help="Speed of the recorded pauses.",
)
@click.option(
    "--gap", type=click.FloatRange(0), metavar="MS", help="Pause before each message of the agent."
)
@click.option("--max-gap", type=click.FloatRange(0), metavar="MS", help="Longest pause.")
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a stream waits for the next recorded message of its client; 0 for no limit.",
)
@click.option(
    "--keep-times",
    is_flag=True,
    help="Keep the recorded timestamps; by default they are shifted to the current time.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Continue a stream, with a warning, if its client sends another message than recorded.",
)
@click.option(
    "--fault",
    multiple=True,
    metavar="FAULT",
    help='Inject a fault: "drop #3.4", "stall 30s before #3.6" and more.',
)
@click.option("--session", type=int, metavar="N", help="Serve only this session of the recording.")
@click.option(
    "--agent",
    default="",
    metavar="HOST:PORT",
    help="Serve only this agent of several: its address and base path.",
)
@click.option(
    "--allow-incomplete",
    is_flag=True,
    help="Serve calls that were not captured to their end, up to there.",
)
@click.option(
    "--allow-redacted",
    is_flag=True,
    help="Serve calls that send labels in place of redacted credentials.",
)
@click.option("--keep-card", is_flag=True, help="Serve the agent card as recorded, URLs included.")
@click.option(
    "--add-interface",
    multiple=True,
    type=click.Choice(["jsonrpc", "rest", "grpc"]),
    help="Add this binding to the agent card, which does not list it in the recording.",
)
@click.option(
    "--fail-on-miss", is_flag=True, help="Exit with 1 if a request has no recorded answer."
)
@click.option(
    "--fail-unused", is_flag=True, help="Exit with 1 if a recorded call was not requested."
)
@add_options(
    ProxyArguments,
    names=("log_format", "quiet"),
    helps={"quiet": "Print no line per call; only misses and the summary."},
    environment=False,
)
@click.argument("recording", type=FILE)
@click.pass_context
def replay(context: click.Context, /, recording: Path, **typed: Any) -> None:
    """Serve RECORDING (or a cassette) as a mock agent: gRPC, JSON-RPC and REST on one port, with
    its agent card.

    A recording of one binding is served on the others too. A request without a recorded answer is
    refused, and reported with the nearest recorded call and the differences from it.
    """
    from a2a_proxy.cli.replay import replay_config, run_replay

    context.exit(run_replay(replay_config(recording=recording, **typed)))


@cli.command(short_help="Send a recording's client side to a live agent, and compare the answers.")
@add_agent_options
@click.option(
    "--filter",
    "-f",
    "where",
    default="",
    metavar="EXPR",
    help="Send only the calls that match: 'task:b2a4'.",
)
@click.option(
    "--speed",
    default="instant",
    show_default=True,
    metavar="instant|recorded|N",
    help="Pauses: none, as recorded, or divided by N.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Omitted defaults, other chunks and another order count as differences too.",
)
@click.option(
    "--shape",
    is_flag=True,
    help="Compare only kinds, states, order and structure; model text may differ.",
)
@click.option(
    "--match-on",
    multiple=True,
    metavar="NAME|MODULE:FUNCTION",
    help="Compare only these parts of the answers, or by your own function: --match-on text,task.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="Ignore differences at this path: text, '$.task.history'.",
)
@click.option(
    "--normalize",
    multiple=True,
    metavar="REGEX",
    help="Take all texts that this matches for equal: 'order-[0-9]+'.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
)
@click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    help="Write the report to this file too.",
)
@click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Keep the recording of the drive in this file.",
)
@click.option("--allow-incomplete", is_flag=True, help="Drive a recording that is not complete.")
@click.argument("recording", type=FILE)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.pass_context
def drive(context: click.Context, /, **typed: Any) -> None:
    """Send the client side of RECORDING to a live agent, and report how its answers differ from the
    recorded ones.

    Each call is sent once its recorded dependencies are satisfied; ids created by the agent now
    replace the recorded ones. Differences between any two runs (ids, times, ports) are ignored.
    COMMAND is a stdio agent.

    \b
    Exit code: 0 the same, 1 different, 2 it cannot be driven,
    3 a recording that is not complete.
    """
    from a2a_proxy.cli.drive.options import drive_command_options
    from a2a_proxy.cli.drive.run import run_drive

    context.exit(run_drive(drive_command_options(**typed)))


@cli.command(short_help="Send one recorded call to a live agent again, as it was or edited.")
@add_agent_options
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a member of the decoded request, to JSON or a text: 'message.parts[0].text=hi'.",
)
@click.option("--edit", is_flag=True, help="Open the decoded request in $EDITOR first.")
@click.option(
    "--request",
    type=FILE,
    metavar="FILE",
    help="Send the decoded request in this file, a JSON object, instead of the recorded one.",
)
@click.option(
    "--as-recorded", is_flag=True, help="Keep the recorded message ids, which are otherwise new."
)
@click.option("--force", is_flag=True, help="Send an edited request that is not valid.")
@click.option("--diff", is_flag=True, help="Show how the answer differs from the recorded one.")
@click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Record into this file, a new session if it exists; by default a new file.",
)
@click.argument("recording", type=FILE)
@click.argument("place")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.pass_context
def send(context: click.Context, /, **typed: Any) -> None:
    """Send one call of RECORDING to a live agent again. PLACE is its number: 3, or 2:3 in session
    2.

    Each message of the answer is printed at its arrival, as one JSON value. The recording has a
    note of the call that was sent again. The lines of standard input are further messages of a live
    call. COMMAND is a stdio agent.

    \b
    Exit code: 0 answered (with --diff: the same),
    1 an error (with --diff: different), 2 it cannot be sent.
    """
    from a2a_proxy.cli.drive.options import send_options
    from a2a_proxy.cli.drive.send import run_send

    context.exit(run_send(send_options(**typed)))


cli.add_command(completion)


def main() -> None:
    """Run `a2a-proxy` and exit with its code."""
    sys.exit(run_cli("a2a-proxy", cli))


def run_cli(program: str, command: click.Command) -> int:
    """Run `command` and return its exit code; the one place where errors become exit codes."""
    prepare_streams()
    code = 0
    try:
        code = _invoke_command(program, command)
        sys.stdout.flush()  # an error at the end of the interpreter could not be reported
    except BrokenPipeError:
        discard_output(sys.stdout)
    except OSError as wrong:
        gone = terminal_gone(wrong)
        discard_output(sys.stdout)
        if not gone:
            where = (
                f"cannot use {wrong.filename}: " if wrong.filename else "cannot write the output: "
            )
            where = (
                "" if wrong.errno in (errno.EMFILE, errno.ENFILE) else where
            )  # pipes and sockets have no name
            hint = hint_for(wrong, "check its disk and its permissions")
            print_error(program, f"{where}{(wrong.strerror or str(wrong)).lower()}", hint)
        code = (code or INTERRUPTED) if gone else EXIT_USAGE
    try:
        sys.stderr.flush()
    except OSError:
        discard_output(sys.stderr)
    return code


def _invoke_command(program: str, command: click.Command) -> int:
    """Run the command and return its exit code. Raises OSError, mostly if its output cannot be
    written."""
    try:
        code = command.main(prog_name=program, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        from a2a_proxy.present.output import print_document

        print_document(help_wanted.format_message())
        return 0
    except click.ClickException as mistake:
        context = getattr(mistake, "ctx", None)
        path = context.command_path if context is not None else program
        # A message of click, which is a sentence, in the style of this program: lower case, no full
        # stop.
        text = " ".join(mistake.format_message().split()).rstrip(".")
        print_error(
            program,
            text[:1].lower() + text[1:],
            f"the options are listed by: {path} --help",
        )
        return EXIT_USAGE
    except UserError as mistake:
        print_error(program, mistake.message, hint_for(mistake, mistake.hint), mistake.details)
        return mistake.code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:
        # click raises it if the reader of the output has closed the pipe (`| head`), which is
        # success.
        return 0
    return code if isinstance(code, int) else 0
