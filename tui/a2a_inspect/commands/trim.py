"""`a2a-inspect cassette trim`: write a part of a recording as a cassette that can be replayed."""

from pathlib import Path

import msgspec

from a2a_inspect.commands.merge import OVERWRITE_HINT
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_inspect.data.redacted_view import RedactionOptions, open_redacted_view
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.cassette.exporter import Selection
from a2a_proxy.recording.cassette.file import (
    check_replaceable,
    open_recording_or_cassette,
    write_cassette,
)
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import Counts, label_place, split_key
from a2a_proxy.recording.tools.trim import needed_calls


class TrimOptions(msgspec.Struct, frozen=True):
    """Options of the trim command."""

    target: Path
    words: tuple[str, ...] = ()
    """Places, as for `show`; empty: the whole recording."""
    where: str = ""
    exact: bool = False
    """Whether to omit everything that was not chosen, even if a replay needs it."""
    overwrite: bool = False
    redaction: RedactionOptions = RedactionOptions()
    as_json: bool = False


def trim_to_cassette(recording: Recording, options: TrimOptions) -> None:
    """Write the chosen part, and everything else its replay needs, to `target`.

    Raises:
        UserError: nothing was chosen, a chosen place does not exist, or the target exists and may
        not be replaced. RecordingError: the recording cannot be read, or the cassette cannot be
        written.
    """
    if not (options.words or options.where or options.redaction.policy):
        raise UserError(
            "no part of the recording is selected",
            "name places (2, 1:, a task's id) or a filter: -f 'task:b2a4'",
        )
    if options.target.exists() and not options.overwrite:
        raise UserError(f"{options.target} exists", OVERWRITE_HINT)
    check_replaceable(options.target, overwrite=True)
    chosen = _selected_keys(recording, options)
    besides = {} if options.exact else needed_calls(recording, chosen)
    selection_words = " ".join((*options.words, options.where)).strip()
    keys = chosen | besides.keys() if selection_words else None
    with open_redacted_view(recording, keys, options.redaction) as (clean, kept_keys):
        remark = (
            f"{CHOICE_PREFIX}{options.redaction.redact_choice(selection_words)} and what that needs"
        )
        selection = Selection(clean, kept_keys, remark) if kept_keys is not None else None
        write_cassette(clean, options.target, selection=selection, overwrite=options.overwrite)
    with open_recording_or_cassette(options.target) as trimmed:
        before, after = recording.count_rows(), trimmed.count_rows()
    several = len(recording.read_sessions()) > 1
    reasons = [
        (_exchange_name(number, several), reason) for number, reason in sorted(besides.items())
    ]
    if options.as_json:
        print_json(
            {
                "cassette": str(options.target),
                "chosen": len(chosen),
                "besides": [{"place": place, "reason": reason} for place, reason in reasons],
                "exchanges": after.exchanges,
                "frames": after.frames,
                "left_out": _missing_counts(before, after),
            }
        )
        return
    for place, reason in reasons:
        print_line(f"also kept  {place}  {reason}")
    for name, count in _missing_counts(before, after).items():
        print_line(
            f"left out  {text.format_count(count, name.removesuffix('s'))} of "
            f"{getattr(before, name)}"
        )
    print_line(f"{text.format_count(after.exchanges, 'exchange')} written to {options.target}")


def _selected_keys(recording: Recording, options: TrimOptions) -> set[int]:
    selection = ShowSelection(options.words)
    selection.check_words(recording)
    keys = {row.key for row in recording.read_exchanges() if selection.is_selected(row)}
    if options.where:
        keys &= set(recording.get_queryable().select_ids(options.where, Rows.EXCHANGES))
    if not keys:
        raise UserError(
            f"nothing matches {make_visible(' '.join((*options.words, options.where)).strip())}",
            f"list the exchanges: {shell_line('a2a-inspect', 'ls', recording.path)}",
        )
    return keys


def _exchange_name(number: int, several: bool) -> str:
    session, exchange = split_key(number)
    return label_place(session, exchange, with_session=several)


def _missing_counts(before: Counts, after: Counts) -> dict[str, int]:
    """Return the number of rows of each kind that are not in the cassette."""
    names = ("exchanges", "frames", "tasks", "findings", "connections")
    return {
        name: difference
        for name in names
        if (difference := getattr(before, name) - getattr(after, name))
    }
