"""`a2a-inspect diff`: compare two runs, tasks or exchanges. Exits with 0 (same), 1 (different) or 2
(error)."""

import msgspec

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.diff.places import DiffSide, compute_difference, parse_sides
from a2a_proxy.present.difference.blocks import difference_blocks
from a2a_proxy.present.difference.layout import layout_rows
from a2a_proxy.present.difference.objects import AgentNames, difference_objects
from a2a_proxy.present.output import print_json, print_line, terminal_width


class DiffOptions(msgspec.Struct, frozen=True):
    """Options of the diff command."""

    words: tuple[str, ...]
    everything: bool = False
    """Whether canonical fields are printed and counted as well."""
    where: str = ""
    as_json: bool = False


def print_diff(options: DiffOptions) -> int:
    """Print the differences and return the exit code.

    Raises:
        UserError: the named places cannot be compared, or the filter is not valid.
    """
    left, right = parse_sides(options.words)
    found = compute_difference(left, right, options.where)
    if options.where and not found.matches:
        print_no_match(options.where)
    if options.as_json:
        for difference in difference_objects(
            _side_names(left), _side_names(right), found, options.everything
        ):
            print_json(difference)
    else:
        for side, name in ((left, "left "), (right, "right")):
            print_line(f"{name}  {side.path}{f' {side.label}' if side.place else ''}")
        for line in layout_rows(
            difference_blocks(found, everything=options.everything), terminal_width()
        ):
            print_line(line.text)
    return int(bool(found.count or (options.everything and found.ignored)))


def show_difference_screen(words: tuple[str, ...], where: str) -> int:
    """Show the differences on the screen, over that of the left recording, and return the exit
    code.

    Raises:
        UserError: the named places cannot be compared, or stdout is not a terminal.
    """
    from a2a_inspect.app import run_app
    from a2a_inspect.screens.diff_screen import DiffScreen

    left, right = parse_sides(words)
    return run_app(left.path, make_initial_screen=DiffScreen(left, right, where))


def _side_names(side: DiffSide) -> AgentNames:
    return {"recording": str(side.path), "place": side.place}
