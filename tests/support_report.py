"""A parsed HTML report: its elements as an HTML parser sees them, and its unpacked tables."""

from __future__ import annotations

import base64
import gzip
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.report.writer import write_report
from a2a_proxy.recording.cassette.file import open_recording_or_cassette

Element = tuple[str, tuple[tuple[str, str | None], ...]]
"""Name and attributes."""
VOID = frozenset({"meta", "link", "input", "br"})


class Page(HTMLParser):
    """A page as a parser reads it. Raises AssertionError if elements are not closed in order."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.texts: dict[str, str] = {}
        """Text of elements by id; of scripts and styles without an id by their name."""
        self._open: list[tuple[str, str]] = []
        self.feed(data.decode())
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("id") or tag))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            name = self._open[-1][1]
            self.texts[name] = self.texts.get(name, "") + data

    @property
    def frame(self) -> list[Element]:
        """Return all elements except the tables."""
        return [each for each in self.elements if ("type", "text/plain") not in each[1]]

    def attributes(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements with this name."""
        return [dict(attributes) for tag, attributes in self.elements if tag == name]


class Report:
    """A report with its records."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.page = Page(data)
        self.index = json.loads(self._block("index"))

    def table(self, name: str) -> list[Any]:
        """Return all records of a table. Fails if a block does not end where the index says."""
        records: list[Any] = []
        for block, end in enumerate(self.index["tables"].get(name, ())):
            records += json.loads(self._block(f"{name}-{block}"))
            assert len(records) == end
        return records

    def _block(self, name: str) -> str:
        return gzip.decompress(base64.b64decode(self.page.texts[name], validate=True)).decode()


def reported(path: Path, where: str = "") -> Report:
    """Return the report of a recording, or of its matching exchanges."""
    data = io.BytesIO()
    with open_recording_or_cassette(path) as recording:
        keys = frozenset(row.key for row in recording.find_exchanges(where)) if where else None
        write_report(
            ExportSelection(recording, keys, f"what matches {where}" if where else ""), data
        )
    return Report(data.getvalue())
