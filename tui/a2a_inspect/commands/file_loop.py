"""One command over several files: a bad one is told, and the others are done all the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from a2a_proxy.cli.errors import UserError, print_error

EXIT_FINDINGS = 1
"""Exit code: of a file there was something to say."""


def process_files(paths: Iterable[Path], process: Callable[[Path], bool]) -> int:
    """Do it with one file after the other; the exit code.

    It is that of the error where a file could not be done, else EXIT_FINDINGS where `process` was true of one, else 0.
    """
    failed, found = 0, False
    for path in paths:
        try:
            found = process(path) or found
        except UserError as wrong:
            sys.stdout.flush()  # so that the error stands between what is said of other files
            print_error("a2a-inspect", wrong.message, wrong.hint)
            failed = max(failed, wrong.code)
    return failed or (EXIT_FINDINGS if found else 0)
