"""Run one command over several files: report a file that fails and continue with the others."""

from collections.abc import Callable, Iterable
from pathlib import Path

from a2a_proxy.cli.errors import print_error
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import raw_output

EXIT_FINDINGS = 1
"""Exit code: a file has findings or would change."""


def process_files(paths: Iterable[Path], process: Callable[[Path], bool]) -> int:
    """Call `process` for each file and return the exit code.

    It is the code of the error if a file failed, else EXIT_FINDINGS if `process` returned true for
    a file, else 0.
    """
    failed, found = 0, False
    for path in paths:
        try:
            found = process(path) or found
        except UserError as wrong:
            raw_output().flush()  # keeps the error in order with the output about other files
            print_error("a2a-inspect", wrong.message, wrong.hint, wrong.details)
            failed = max(failed, wrong.code)
    return failed or (EXIT_FINDINGS if found else 0)
