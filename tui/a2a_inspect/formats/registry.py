"""The formats of `a2a-inspect export` and of the screen's menu: each has an entry here and a module
with a writer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from a2a_inspect.formats.chosen import ExportSelection


class ExportFormat(NamedTuple):
    """One format.

    Its writer takes `(selection: ExportSelection, stream: BinaryIO, **options)`. It reads the
    recording row by row and raises RecordingError if that fails; its output so far is then
    discarded.
    """

    name: str
    suffix: str
    """Suffix of its files."""
    description: str
    """Short description for the help and the menu."""
    where: str
    """`module:function` of its writer, imported on first use."""

    def write(self, selection: ExportSelection, stream: BinaryIO, **options: Any) -> None:
        """Call the writer. Raises as it does."""
        module, _, function = self.where.partition(":")
        getattr(importlib.import_module(module), function)(selection, stream, **options)


DEFAULT_FORMAT = "jsonl"
"""Format if none is named."""
_FORMATS_PACKAGE = "a2a_inspect.formats"
_ALL_FORMATS = (
    ExportFormat(
        "jsonl",
        ".a2a.jsonl",
        "JSON lines that convert back to a recording without loss",
        f"{_FORMATS_PACKAGE}.jsonl:write_jsonl",
    ),
    ExportFormat(
        "har", ".har", "HAR 1.2, for browsers' developer tools", f"{_FORMATS_PACKAGE}.har:write_har"
    ),
    ExportFormat(
        "mermaid",
        ".md",
        "Markdown with a sequence diagram for each task",
        f"{_FORMATS_PACKAGE}.mermaid:write_mermaid",
    ),
    ExportFormat(
        "parquet",
        ".parquet",
        "a table with a row for each frame",
        f"{_FORMATS_PACKAGE}.parquet:write_parquet",
    ),
    ExportFormat(
        "html",
        ".html",
        "a page with diagrams, payloads and findings, for any browser",
        "a2a_inspect.formats.report.writer:write_report",
    ),
)
FORMATS = {each.name: each for each in _ALL_FORMATS}
"""Name -> format, in the order of the help and the menu."""
