"""Options and arguments of `a2a-inspect`. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from a2a_inspect.arguments import is_recording_path
from a2a_inspect.cli.archive import archive
from a2a_inspect.cli.card import card
from a2a_inspect.cli.cassette import cassette
from a2a_inspect.cli.common_options import filter_option, json_option
from a2a_inspect.cli.export import export
from a2a_inspect.cli.report_options import add_report_options
from a2a_inspect.cli.word_completion import complete_place, complete_rule, complete_topic
from a2a_proxy import __version__
from a2a_proxy.cli.completion import completion
from a2a_proxy.cli.help_sections import FILE, SectionedGroup
from a2a_proxy.cli.main import run_cli
from a2a_proxy.cli.redaction_options import add_redaction_options

if TYPE_CHECKING:
    from a2a_proxy.protocol.extensions import Extension

_HELP = """Inspect recordings of A2A traffic, including recordings that are still being written.

\b
  a2a-inspect                      open the newest recording on the screen
  a2a-inspect FILE [FILE...]       open one recording, or several as one
  a2a-inspect FILE --web           open it in a browser
  a2a-inspect ls -f 'err'          list the failed exchanges
  a2a-inspect why                  print why calls failed or hung
  a2a-inspect show 2 --payloads    print one exchange with decoded payloads
  a2a-inspect export html          write a report for a browser

Without a FILE, commands use the last recording that a proxy of yours began,
also with --record; `help recordings` says where.
"""


_TOPICS = {
    "archive": "archive",
    "card": "checking",
    "cassette": "cassette",
    "check": "checking",
    "diff": "diff",
    "export": "export",
    "import": "import",
    "keys": "inspect",
    "lanes": "lanes",
    "ls": "filters",
    "mcp": "mcp",
    "merge": "recordings",
    "note": "recordings",
    "plugins": "hooks",
    "prune": "recordings",
    "recover": "recordings",
    "rules": "rules",
    "segments": "segments",
    "show": "filters",
    "stats": "inspect",
    "tail": "filters",
    "why": "why",
}
"""Pages of the manual that the help of commands names."""
_HELP_SECTIONS = (
    (
        "View and compare",
        ("ls", "show", "why", "tail", "lanes", "segments", "stats", "diff", "note", "keys"),
    ),
    ("Check", ("check", "card", "rules", "plugins", "mcp")),
    ("Import and export", ("import", "export", "cassette", "archive")),
    ("Maintain", ("merge", "prune", "recover")),
    ("Help", ("help", "completion")),
)


class _InspectGroup(SectionedGroup):
    """The top-level group: `a2a-inspect FILE` means `a2a-inspect screen FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the screen's command if the user named none."""
        if not args and ctx.resilient_parsing:  # the shell completes the first word
            return super().parse_args(ctx, args)
        if not args or (
            args[0] not in self.commands
            and (is_recording_path(args[0]) or _is_screen_option(args[0]))
        ):
            args = ["screen", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or the options with those of the screen, that begin with a word; a
        file if there are none.
        """
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            found += [
                each for each in screen.shell_complete(ctx, incomplete) if each.value != "--help"
            ]
        return found or [CompletionItem(incomplete, type="file")]


def _is_screen_option(word: str) -> bool:
    """Return whether `word` is an option of the screen's command."""
    return word.partition("=")[0] in {
        name for option in screen.params for name in option.opts if name[:2] == "--"
    }


_recording_argument = click.argument("recording", required=False, type=FILE)
_recordings_argument = click.argument("recordings", nargs=-1, type=FILE)


@click.group(
    cls=_InspectGroup,
    command_parts=_HELP_SECTIONS,
    topics=_TOPICS,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__, prog_name="a2a-inspect", message="%(prog)s %(version)s", help="Print the version."
)
def cli() -> None:
    """See `_HELP`."""
    from a2a_proxy.protocol.extensions.registry import REGISTRY

    REGISTRY.use_source(_read_plugins)


def _read_plugins() -> tuple[Extension, ...]:
    from a2a_inspect.commands.plugins import plugin_extensions

    return plugin_extensions()


@cli.command(hidden=True)
@_recordings_argument
@click.option(
    "--web",
    "in_browser",
    is_flag=True,
    help="Serve the screen to a browser on this machine instead (extra: web).",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With --web: listen on this port (default: a free one).",
)
@click.option(
    "--write",
    is_flag=True,
    help="With --web: allow notes, exports, and calls that are sent again (default: read-only).",
)
def screen(recordings: tuple[Path, ...], in_browser: bool, port: int, write: bool) -> int:
    """Open the screen."""
    from a2a_inspect.data.recording_choice import resolve_recording

    paths = recordings or (resolve_recording(None),)
    if in_browser:
        from a2a_inspect.web.server import serve_recording

        if len(paths) > 1:
            raise click.UsageError(
                "--web shows one recording: merge them first with `a2a-inspect merge`"
            )
        return serve_recording(paths[0], port, write=write)
    if port or write:
        raise click.UsageError("--port and --write require --web")
    from a2a_inspect.app import run_app

    return run_app(*paths, is_chosen=not recordings)


@cli.command()
@_recordings_argument
@click.option(
    "--tasks",
    is_flag=True,
    help="Print one line per task; with a filter, tasks of matching exchanges.",
)
@filter_option
@click.option(
    "--columns",
    default="",
    metavar="NAMES",
    help="Print these columns: titles, fields of filters, header:NAME, JSON paths; separated by "
    "commas.",
)
@click.option("--explain", is_flag=True, help="Print the SQL query of the filter instead.")
@json_option
def ls(
    recordings: tuple[Path, ...],
    tasks: bool,
    where: str,
    columns: str,
    explain: bool,
    as_json: bool,
) -> None:
    """List the exchanges of a recording, or of several by time."""
    from a2a_inspect.commands import ls, ls_several
    from a2a_inspect.commands.filters import explain_filter
    from a2a_inspect.data.list_columns import parse_columns
    from a2a_inspect.data.recording_choice import open_recordings

    if explain and (tasks or as_json or columns):
        raise click.UsageError("--explain can only be combined with --filter")
    if columns and (tasks or as_json):
        raise click.UsageError("--columns is about the list of exchanges: omit --tasks and --json")
    chosen = parse_columns(columns)
    with open_recordings(recordings) as several:
        first = several.members[0].recording
        if explain:
            explain_filter(first, where)
        elif len(several.members) > 1 and columns:
            raise click.UsageError(
                "--columns takes one recording: merge them first with `a2a-inspect merge`"
            )
        elif len(several.members) > 1:
            (ls_several.list_tasks if tasks else ls_several.list_exchanges)(
                several, as_json=as_json, where=where
            )
        else:
            if tasks:
                ls.list_tasks(first, as_json=as_json, where=where)
            else:
                ls.list_exchanges(first, as_json=as_json, where=where, columns=chosen)


@cli.command()
@click.argument("words", nargs=-1, metavar="[RECORDING] [PLACE]...", shell_complete=complete_place)
@click.option("--payloads", "-p", is_flag=True, help="Print each frame with its decoded payload.")
@click.option(
    "--artifacts",
    "-a",
    is_flag=True,
    help="Print each task with its artifacts, assembled from their chunks.",
)
@click.option("--raw", is_flag=True, help="Print each frame with its payload as sent on the wire.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["json", "raw", "curl", "grpcurl", "python", "pytest", "ids"]),
    help="Print one exchange or frame (2.5) in another form, to send it again or to test it.",
)
@filter_option
@json_option
def show(
    words: tuple[str, ...], form: str | None, where: str, as_json: bool, **detail: bool
) -> None:
    """Print the conversation as a tree of sessions, contexts, tasks, exchanges and frames.

    PLACE is an exchange as `ls` prints it (2, or 1:2 with its session), a frame of it (2.5), a
    session (1:), or a prefix of a task id, at least four characters.

    The times of the agent's frames and the duration of an exchange are measured from the end of the
    request, the times of the client's frames from its first byte.
    """
    from a2a_inspect.commands.show import show_conversation
    from a2a_inspect.commands.show_selection import ShowSelection
    from a2a_inspect.data.recording_choice import open_recording, split_words

    path, places = split_words(words, anywhere=True)
    if form is not None and (where or as_json or any(detail.values())):
        raise click.UsageError("--as cannot be combined with other options")
    with open_recording(path) as source:
        if form is not None:
            from a2a_inspect.commands.show_as import show_as

            show_as(source, places, form)
            return
        show_conversation(source, ShowSelection(places, where=where, **detail), as_json=as_json)


@cli.command()
@click.argument("words", nargs=-1, metavar="[RECORDING] [PLACE]...", shell_complete=complete_place)
@filter_option
@json_option
def why(words: tuple[str, ...], where: str, as_json: bool) -> None:
    """Print why calls and tasks failed or hung: the cause, who must act, what to do next.

    Without a PLACE every call that did not end well, the most important ones first. With a PLACE
    (see `show`) the whole account of a call, with the frames it rests on.
    """
    from a2a_inspect.commands.show_selection import ShowSelection
    from a2a_inspect.commands.why import explain_endings
    from a2a_inspect.data.recording_choice import open_recording, split_words

    path, places = split_words(words, anywhere=True)
    with open_recording(path) as source:
        explain_endings(source, ShowSelection(places, where=where), as_json=as_json)


@cli.command("tail")
@_recordings_argument
@click.option("--follow", "-f", is_flag=True, help="Print new frames until Ctrl-C.")
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of past frames.",
)
@click.option(
    "--filter", "where", default="", metavar="EXPR", help="Only frames that match: 'task:b2a4 err'."
)
@json_option
def show_tail(recordings: tuple[Path, ...], **options: Any) -> None:
    """Print the newest frames of all exchanges in order, and with -f each new one.

    Several RECORDINGS are followed as one. With -f, a RECORDING need not exist yet.
    """
    from a2a_inspect.commands.tail import TailOptions, print_tail

    print_tail(recordings, TailOptions(**options))


@cli.command("diff")
@click.argument(
    "words", nargs=-1, metavar="LEFT [PLACE] [RIGHT] [PLACE]", shell_complete=complete_place
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Compare identifiers, times, addresses and similar values as well.",
)
@click.option(
    "--screen", "on_screen", is_flag=True, help="Show the difference on the screen, side by side."
)
@filter_option
@json_option
def show_difference(
    words: tuple[str, ...], everything: bool, on_screen: bool, where: str, as_json: bool
) -> int:
    """Print the differences between two recordings, or between two places of one.

    LEFT and RIGHT are recordings or cassettes, PLACE is an exchange (3, or 1:3 with its session), a
    frame (3.2), a session (1:) or a prefix of a task id. A single exchange is compared with the
    preceding exchange of the same operation; with a single recording, its last two sessions are
    compared.

    \b
    Exit code: 0 no differences, 1 differences, 2 the comparison is not possible.
    """
    from a2a_inspect.commands.diff import DiffOptions, print_diff, show_difference_screen

    if on_screen:
        return show_difference_screen(words, where)
    return print_diff(DiffOptions(words, everything, where, as_json))


@cli.command("stats")
@_recordings_argument
@filter_option
@click.option(
    "--histogram", is_flag=True, help="Also print frames, bytes, exchanges and findings over time."
)
@json_option
def show_stats(recordings: tuple[Path, ...], **options: Any) -> None:
    """Print statistics of recordings: calls of each kind, latencies, errors and findings."""
    from a2a_inspect.commands.stats import StatsOptions, show_statistics
    from a2a_inspect.data.recording_choice import open_recordings

    with open_recordings(recordings) as several:
        show_statistics(several, StatsOptions(**options))


@cli.command("segments")
@click.argument(
    "words", nargs=-1, metavar="[RECORDING] [EXCHANGE|TASK]...", shell_complete=complete_place
)
@click.option(
    "--media",
    type=FILE,
    metavar="DIR",
    help="Write each media part once to DIR.",
)
@json_option
def segments_of(words: tuple[str, ...], as_json: bool, media: Path | None) -> None:
    """Print turns, interruptions and hand-offs between agents, with their latencies.

    EXCHANGE is a number as `ls` prints it (1:2 for one session of several); TASK is a task id or a
    prefix of one.
    """
    from a2a_inspect.commands.segments.run import SegmentsOptions, show_segments
    from a2a_inspect.data.recording_choice import open_recording, split_words

    path, places = split_words(words, anywhere=True)
    with open_recording(path) as source:
        show_segments(source, SegmentsOptions(places, as_json, media))


@cli.command("lanes")
@click.argument(
    "words", nargs=-1, metavar="[RECORDING] [EXCHANGE|TASK]", shell_complete=complete_place
)
@click.option(
    "--width",
    type=click.IntRange(min=40),
    metavar="CELLS",
    help="Width of the drawing (default: the terminal's).",
)
@json_option
def show_swimlane(words: tuple[str, ...], **drawing: Any) -> None:
    """Draw a task's swimlane: one lane per party, time downwards, with pauses, interruptions and
    findings in place.

    EXCHANGE is a number as `ls` prints it (1:2 for one session of several); TASK is a task id or a
    prefix of one. Tasks that agents handed over to one another are drawn together. Without an
    argument, the newest task is drawn.
    """
    from a2a_inspect.commands.lanes import LaneOptions, show_lanes
    from a2a_inspect.data.recording_choice import open_recording, split_words

    path, places = split_words(words, anywhere=True)
    with open_recording(path) as source:
        show_lanes(source, LaneOptions(places, **drawing))


@cli.command("note")
@click.argument(
    "words", nargs=-1, metavar="[RECORDING] [PLACE [TEXT]...]", shell_complete=complete_place
)
@click.option(
    "--bookmark/--no-bookmark", default=None, help="Set or remove the bookmark of the place."
)
@click.option("--delete", is_flag=True, help="Delete the note and the bookmark of the place.")
@json_option
def write_note(words: tuple[str, ...], **options: Any) -> None:
    """Write a note at a PLACE of a recording; without a TEXT list the notes.

    PLACE is an exchange as `ls` prints it (2, or 1:2 with its session), a frame of it (2.5), or a
    session (1:). A place has one note; a new one replaces it. Notes are stored in the recording,
    even while it is being written. Find them with `-f note:WORD` and `-f bookmark:yes`.
    """
    import time

    from a2a_inspect.commands.note import NoteOptions, edit_notes
    from a2a_inspect.data.recording_choice import split_words

    path, rest = split_words(words)
    edit_notes(path, NoteOptions(rest, **options), time.time_ns())


@cli.command("prune")
@click.argument("recordings", nargs=-1, type=FILE)
@click.option(
    "--older-than",
    metavar="AGE",
    help="Delete sessions that ended longer ago than AGE: 12h, 30d, 8w.",
)
@click.option(
    "--keep", type=click.IntRange(min=0), metavar="N", help="Keep only the N newest sessions."
)
@click.option(
    "--max-size",
    metavar="SIZE",
    help="Delete the oldest sessions until the rest fits in SIZE: 500M, 4GiB.",
)
@click.option("--dry-run", "-n", is_flag=True, help="Print what would be deleted; delete nothing.")
@json_option
def prune_recordings(
    recordings: tuple[Path, ...],
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    **how: bool,
) -> None:
    """Delete old sessions of RECORDINGS, or of all recordings in the state directory.

    Deletes whole sessions, the oldest first, and never a session that is being recorded. A file
    without remaining sessions is deleted.
    """
    import time

    from a2a_inspect.commands.prune import PruneLimits, prune_files
    from a2a_proxy.cli.sizes import parse_duration, parse_size

    limits = PruneLimits(
        parse_duration("--older-than", older_than) if older_than is not None else None,
        keep,
        parse_size("--max-size", max_size) if max_size is not None else None,
    )
    prune_files(recordings, limits, time.time_ns(), **how)


@cli.command("merge")
@click.argument("target", metavar="OUT", type=FILE)
@click.argument("recordings", metavar="RECORDING...", nargs=-1, required=True, type=FILE)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option("--dry-run", "-n", is_flag=True, help="Print what would be merged; write nothing.")
@json_option
def merge_files(target: Path, recordings: tuple[Path, ...], **options: bool) -> None:
    """Write the sessions of several recordings or cassettes to one recording OUT, or to a cassette
    if its name ends with .jsonl; a session that occurs twice is written once.

    A session that is being recorded is merged up to this moment. The RECORDINGs are not changed.
    """
    from a2a_inspect.commands.merge import MergeOptions, merge_recordings

    merge_recordings(target, recordings, MergeOptions(**options))


@cli.command("import")
@click.argument("file", type=FILE)
@click.option(
    "--output",
    "-o",
    "target",
    type=FILE,
    metavar="RECORDING",
    help="The new recording (default: FILE with the suffix .a2a.db).",
)
@add_redaction_options
def import_recording(
    file: Path, target: Path | None, redact: tuple[str, ...], redact_policy: Path | None
) -> None:
    """Convert a HAR FILE of a browser or another proxy, or a packet capture, to a RECORDING.

    The calls are decoded, redacted and checked as if the proxy had recorded them. The output lists
    what the file lacks.
    """
    from a2a_inspect.commands.import_file import import_file
    from a2a_proxy.cli.redaction_options import policy_words

    import_file(file, target, policy_words(redact, redact_policy))


cli.add_command(archive)
cli.add_command(card)
cli.add_command(cassette)
cli.add_command(completion)
cli.add_command(export)


@cli.command("mcp")
@_recordings_argument
def serve_assistant(recordings: tuple[Path, ...]) -> None:
    """Serve recordings to an assistant by MCP over stdin and stdout, read-only (extra: mcp).

    The assistant can open only the RECORDINGS, or those of the state directory if none is named.
    """
    from a2a_inspect.commands.mcp import serve_mcp

    serve_mcp(recordings)


@cli.command("help")
@click.argument("topic", default="", shell_complete=complete_topic)
def show_help(topic: str) -> None:
    """Print a page of the manual, or list its pages.

    TOPIC is the name of a page: `replay`, `filters`, or of a file that a page refers to:
    `deploy/compose.yaml`. The manual is a part of the installation, no network is needed.
    """
    from a2a_inspect.commands.manual import show_manual

    show_manual(topic, cli.commands)


@cli.command("check")
@click.argument("recordings", nargs=-1, type=FILE)
@add_report_options
@filter_option
@click.option(
    "--all", "lists_all", is_flag=True, help="List each finding instead of grouping them by rule."
)
@click.option(
    "--allow-incomplete", is_flag=True, help="Do not exit with 3 if the capture is incomplete."
)
def check_recordings(recordings: tuple[Path, ...], **options: Any) -> int:
    """Run the current rules over recordings and report violations of the protocol.

    \b
    Exit code: 0 no finding is severe enough, 1 at least one is,
    2 the check is not possible, 3 as 0, but the capture is incomplete.
    """
    import datetime

    from a2a_inspect.check.run import CheckOptions, run_check

    return run_check(
        recordings or (None,), CheckOptions(**options), datetime.datetime.now(datetime.UTC).date()
    )


@cli.command("rules")
@click.argument("rule", required=False, default="", metavar="[ID]", shell_complete=complete_rule)
@json_option
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print all rules as a page of the manual."
)
def list_rules(rule: str, as_json: bool, as_markdown: bool) -> None:
    """List the rules, or explain the rule with this ID.

    ID may be short: GEN-001 for A2A-GEN-001, GEN for the whole family.
    """
    from a2a_inspect.commands.rules import show_rules

    show_rules(rule, as_json=as_json, as_markdown=as_markdown)


@cli.command("keys")
@click.option("--print", "as_toml", is_flag=True, help="Print a key file to save and edit.")
@json_option
def list_keys(as_toml: bool, as_json: bool) -> None:
    """List the keys and actions of the screen, and the file that overrides them."""
    from a2a_inspect.commands.keys import show_keys

    show_keys(as_toml=as_toml, as_json=as_json)


@cli.command("plugins")
@_recording_argument
@click.option(
    "--hook",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of an installed hook, or module:Class.",
)
@click.option(
    "--follow", "-f", is_flag=True, help="Follow running sessions until they end or Ctrl-C."
)
def use_plugins(recording: Path | None, names: tuple[str, ...], follow: bool) -> int:
    """List the installed hooks and the known A2A extensions, or call hooks for a recording."""
    from a2a_inspect.commands.plugins import call_hooks, list_plugins

    if recording is None and not (names or follow):
        return list_plugins()
    return call_hooks(recording, names, follow=follow)


@cli.command()
def recover() -> int:
    """Complete recordings whose proxy and recorder both stopped early."""
    from a2a_inspect.commands.recover import recover_all

    return recover_all()


def _refuse_to_wait(context: click.Context, _option: click.Parameter, typed: bool) -> None:
    from a2a_inspect.data.recording_choice import NO_WAIT

    context.meta[NO_WAIT] = typed


_no_wait = click.Option(
    ["--no-wait"],
    is_flag=True,
    expose_value=False,
    callback=_refuse_to_wait,
    help="Read the recording now, even if its proxy has ended and its recorder has not finished.",
)
_READERS = (
    ls,
    show,
    show_tail,
    show_difference,
    show_stats,
    segments_of,
    show_swimlane,
    write_note,
)
_CASSETTE_READERS = (cassette.commands[name] for name in ("scan", "trim"))
for _each in (
    *(*_READERS, check_recordings, use_plugins, archive.commands["put"]),
    *(*export.commands.values(), *_CASSETTE_READERS),
):
    _each.params.append(_no_wait)


def main() -> None:
    """Run `a2a-inspect` and exit with its code."""
    sys.exit(run_cli("a2a-inspect", cli))
