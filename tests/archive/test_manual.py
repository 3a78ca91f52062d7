"""The manual's page about the archive lists the existing columns and options."""

import re
from importlib.resources import files

import pyarrow as pa
import pytest

from a2a_inspect.cli.archive import archive
from a2a_proxy.archive.schema import FACT_COLUMNS, FRAME_COLUMNS, ArchiveColumn

PAGE = (files("a2a_proxy") / "manual" / "archive.md").read_text(encoding="utf-8")


def kind(column: ArchiveColumn) -> str:
    if pa.types.is_dictionary(column.type):
        return "string"
    if pa.types.is_timestamp(column.type):
        return "timestamp[ns], UTC"
    if pa.types.is_list(column.type):
        of = column.type.value_type
        return (
            "list of strings"
            if pa.types.is_string(of)
            else f"list of {{{', '.join(each.name for each in of)}}}"
        )
    return str(column.type)


@pytest.mark.parametrize("columns", [FRAME_COLUMNS, FACT_COLUMNS])
def test_manual_lists_every_column_in_order(columns: tuple[ArchiveColumn, ...]) -> None:
    rows = "\n".join(f"| `{each.name}` | {kind(each)} | {each.meaning} |" for each in columns)

    assert f"|---|---|---|\n{rows}\n" in PAGE + "\n", f"the page should say:\n{rows}"


def test_options_in_the_manual_exist() -> None:
    options = {
        word
        for line in re.findall(r"a2a-inspect archive (.*)", PAGE)
        for word in re.findall(r"--[a-z]+", line)
    }
    known = {
        name
        for command in archive.commands.values()
        for option in command.params
        for name in option.opts
    }

    assert options
    assert options <= known
