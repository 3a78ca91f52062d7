"""`a2a-inspect import`: a file of another program to a recording."""

from __future__ import annotations

import sys
from pathlib import Path

from a2a_inspect.data.recording_choice import convert_recording_errors
from a2a_inspect.imports.har_file import HarFile
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.store.atomic_create import check_recording_target


def import_file(path: Path, target: Path | None, words: tuple[str, ...]) -> None:
    """Import the file to the new recording `target` (default: beside the file), and print the counts and what is
    missing.

    Raises:
        UserError: the file cannot be read or has no A2A call, or the recording exists or cannot be written.
    """
    target = path.with_suffix(".a2a.db") if target is None else target
    with convert_recording_errors():
        check_recording_target(target)
        source = HarFile(path)
        done = write_import(source, target, ImportOptions(words, ("a2a-inspect", *sys.argv[1:])))
    counts = f"{text.format_count(done.exchanges, 'exchange')}, {text.format_count(done.frames, 'frame')}"
    findings = f"{text.format_count(done.tasks, 'task')}; {text.format_count(done.findings, 'finding')}"
    print(f"imported {make_visible(str(path))}: {counts}, {findings}")
    print("the HAR file lacks:")
    for each in source.lacks:
        print(f"  {make_visible(each)}")
    print(f"inspect it: {shell_line('a2a-inspect', str(target))}")
