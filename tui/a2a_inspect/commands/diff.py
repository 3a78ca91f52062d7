"""`a2a-inspect diff`: what differs between two runs, tasks or exchanges. Exits with 0 same, 1 different, 2 error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_inspect.commands.filtered import tell_nothing
from a2a_inspect.commands.table import terminal_width
from a2a_inspect.diff.blocks import blocks
from a2a_inspect.diff.layout import lines
from a2a_inspect.diff.places import Side, difference, sides
from a2a_proxy.cli.console import exchange_object
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.difference.runs import Match, RunDifference
from a2a_proxy.recording.difference.values import Row, path_text
from a2a_proxy.recording.rows import ExchangeRow


class Options(msgspec.Struct, frozen=True):
    """What was asked for."""

    words: tuple[str, ...]
    everything: bool = False
    """Canonical fields as well: they are told, and they count."""
    where: str = ""
    as_json: bool = False


def diff(options: Options) -> int:
    """Print what differs; the exit code.

    Raises:
        UserError: what was named cannot be compared, or the filter is wrong.
    """
    left, right = sides(options.words)
    found = difference(left, right, options.where)
    if options.where and not found.matches:
        tell_nothing(options.where)
    if options.as_json:
        for told in _objects(left, right, found, options.everything):
            print(json.dumps(told))
    else:
        for side, name in ((left, "left "), (right, "right")):
            print(f"{name}  {visible(str(side.path))}{f' {side.place}' if side.place else ''}")
        for line in lines(blocks(found, everything=options.everything), terminal_width()):
            print(line.text)
    return int(bool(found.count or (options.everything and found.ignored)))


def show(words: tuple[str, ...], where: str) -> int:
    """The same on the screen, over that of the left recording; its exit code.

    Raises:
        UserError: what was named cannot be compared, or there is no terminal.
    """
    from a2a_inspect.app import run_app
    from a2a_inspect.screen.diff_screen import DiffScreen

    left, right = sides(words)
    return run_app(left.path, over=DiffScreen(left, right, where))


def _objects(left: Side, right: Side, found: RunDifference, everything: bool) -> Iterator[dict[str, Any]]:
    """The verdict, then each task and each call in which something differs; with `everything` each call."""
    changes = [str(match.change or "same") for match in found.matches]
    yield {
        "kind": "summary",
        "left": {"recording": str(left.path), "place": left.place},
        "right": {"recording": str(right.path), "place": right.place},
        "same": not found.count,
        "differences": found.count,
        "ignored": found.ignored,
        "calls": {change: changes.count(change) for change in sorted(set(changes))},
        "cut": list(found.cut),
    }
    for row in found.tasks:
        if everything or row.counts:
            yield {"kind": "task", **_row(row)}
    for match in found.matches:
        if match.change is not None or everything:
            yield _call(match, everything)


def _call(match: Match, everything: bool) -> dict[str, Any]:
    rows = match.difference.rows if match.difference is not None else ()
    return {
        "kind": "call",
        "change": str(match.change or "same"),
        "moved": match.moved,
        "left": _exchange(match.left),
        "right": _exchange(match.right),
        "differences": [_row(row) for row in rows if everything or row.counts],
        "cut": list(match.difference.cut) if match.difference is not None else [],
    }


def _exchange(row: ExchangeRow | None) -> dict[str, Any] | None:
    return None if row is None else {"session": row.session, **exchange_object(row.exchange)}


def _row(row: Row) -> dict[str, Any]:
    """A row with stable names; what it does not have is left out."""
    made: dict[str, Any] = {"part": str(row.part), "change": str(row.change)}
    for name, path, frame in (("left", row.left, row.frames[0]), ("right", row.right, row.frames[1])):
        if path is not None:
            made[f"{name}_path"] = path_text(path)
        if frame >= 0:
            made[f"{name}_frame"] = frame
    made |= {"left": row.before, "right": row.after}
    return {**made, "ignored": str(row.ignored)} if row.ignored else made
