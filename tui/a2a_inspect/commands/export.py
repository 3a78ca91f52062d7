"""`a2a-inspect export`: write a recording, or its matching exchanges, to a file or to standard
output."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from a2a_inspect.data.recording_choice import STDOUT, open_recording
from a2a_inspect.data.redacted_view import RedactionOptions, open_redacted_view
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.export import export_selection
from a2a_inspect.formats.registry import DEFAULT_FORMAT
from a2a_inspect.signals import interrupt_on_signals
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_note, raw_output
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.tools.trim import needed_cards


class ExportOptions(msgspec.Struct, frozen=True):
    """Options that all export formats share."""

    path: Path | None = None
    """The recording; None: the newest one."""
    where: str = ""
    """Filter expression: matching exchanges are exported completely."""
    redaction: RedactionOptions = RedactionOptions()


def export_recording(
    export_options: ExportOptions, target: Path | None, form: str, **options: Any
) -> None:
    """Write the export to `target`, or to standard output, and print a summary on standard error.

    Raises:
        UserError: a file cannot be read or written, the filter or a policy is not valid, or nothing
        matches the filter.
    """
    is_cassette = form == DEFAULT_FORMAT and target not in (None, STDOUT)
    with interrupt_on_signals(), open_selection(export_options, with_cards=is_cassette) as export:
        if target is None or target == STDOUT:
            export_selection(export, raw_output(), form, **options)
            return
        count = export_selection(export, target, form, **options)
    print_note(f"{text.format_count(count, 'exchange')} written to {target}")


@contextlib.contextmanager
def open_selection(
    export_options: ExportOptions, *, with_cards: bool = False
) -> Iterator[ExportSelection]:
    """Open the selected exchanges for reading, redacted as the policy demands.

    `with_cards` adds the agent cards without which clients cannot start a replay of the selected
    exchanges. Converts errors of the recording raised in the block to UserError.

    Raises:
        UserError: as `export_recording`.
    """
    _ = export_options.redaction.policy  # reports an invalid policy before anything is read
    with open_recording(export_options.path) as recording:
        keys = (
            set(recording.get_queryable().select_ids(export_options.where, Rows.EXCHANGES))
            if export_options.where
            else None
        )
        if keys is not None and not keys:
            listing = shell_line("a2a-inspect", "ls", recording.path)
            raise UserError(
                f"nothing matches {make_visible(export_options.where)}",
                f"list the exchanges: {listing}",
            )
        cards = needed_cards(recording, keys) if with_cards and keys is not None else set()
        if keys is not None:
            keys |= cards
        with open_redacted_view(recording, keys, export_options.redaction) as (clean, kept_keys):
            words = (
                export_options.redaction.redact_choice(f"what matches {export_options.where}")
                if export_options.where
                else ""
            )
            words += " and the agent card" if cards else ""
            yield ExportSelection(clean, None if kept_keys is None else frozenset(kept_keys), words)
