"""The generated page `manual/schema.md`: views and tables of a recording, with values of the sample
recordings.

`python tests/support_schema_page.py` writes the page; `tests/house` compares it with the code.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.store.schema import SCHEMA_VERSION

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "proxy/a2a_proxy/manual/schema.md"

_SAMPLES = ("lossy", "demo", "three-agents", "live-2153", "generations")
"""Where the values come from, in this order."""
_LONGEST = 60
"""Characters of a value that are shown."""
_HIDDEN = {"ident_text"}
"""Views that only other views use."""

_INTRODUCTION = f"""# The schema of a recording

Generated from the code. A recording is an SQLite file; `PRAGMA user_version` is {SCHEMA_VERSION}. \
Views are made for
queries by other programs; [recordings](recordings.md) has examples. \
Tables store the same data with numbers instead of
names, and change from version to version.

Times are ns since the Unix epoch. A column without an example is empty in the sample recordings.

## Views
"""


def schema_page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.a2a.db" for name in _SAMPLES]
        for name, file in zip(_SAMPLES, files, strict=True):
            read_cassette(ROOT / "recordings" / f"{name}.a2a.jsonl", file)
        return "\n".join([_INTRODUCTION, *_views(files), "## Tables\n", *_tables(files[0])])


def _names(file: Path, kind: str) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return sorted(
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = ?", [kind])
        )


def _views(files: list[Path]) -> Iterator[str]:
    for view in _names(files[0], "view"):
        if view in _HIDDEN:
            continue
        examples = _examples(view, files)
        yield f"### {view}\n\n| column | example |\n|---|---|"
        yield from (f"| `{column}` | {_cell(value)} |" for column, value in examples.items())
        yield ""


def _tables(file: Path) -> Iterator[str]:
    yield "| table | columns |\n|---|---|"
    with closing(sqlite3.connect(file)) as db:
        for table in _names(file, "table"):
            if not table.startswith("_"):
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                yield f"| `{table}` | {', '.join(f'`{each}`' for each in columns)} |"
    yield ""


def _examples(view: str, files: list[Path]) -> dict[str, object]:
    """Return the first value of each column that is neither empty nor 0, or the first that is not
    NULL."""
    found: dict[str, object] = {}
    for file in files:
        with closing(sqlite3.connect(file)) as db:
            cursor = db.execute(f"SELECT * FROM {view}")
            columns = [each[0] for each in cursor.description]
            found = dict.fromkeys(columns) | found
            for row in cursor:
                for column, value in zip(columns, row, strict=True):
                    if not found.get(column):
                        found[column] = value
    return found


def _cell(value: object) -> str:
    """Return a value as code in a cell of a table: on one line, shortened, in ASCII."""
    text = "" if value is None else str(value).encode("unicode_escape").decode()
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return f"`{text}`".replace("|", r"\|") if text else ""


if __name__ == "__main__":
    PAGE.write_text(schema_page(), "utf-8")
