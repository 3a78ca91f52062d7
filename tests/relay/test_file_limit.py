"""The limit of open files, in a process of its own: tests/e2e/test_limits.py does the same with a proxy."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, resource
from a2a_proxy.relay.file_limit import SpareFile, file_limit_note, is_file_limit, raise_file_limit, require_file_limit

resource.setrlimit(resource.RLIMIT_NOFILE, (20, 80))
require_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (80, 80)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 80))
require_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 80)
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (80, 80)
assert "the limit is 80" in file_limit_note().text
spare, opened = SpareFile(), []
try:
    while True:
        opened.append(os.open(os.devnull, os.O_RDONLY))
except OSError as error:
    assert is_file_limit(error)
with spare.lend():
    os.close(os.open(os.devnull, os.O_RDONLY))
with spare.lend():
    opened.append(os.open(os.devnull, os.O_RDONLY))
spare.close()
assert not is_file_limit(ConnectionRefusedError(111, "refused"))
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try:
    require_file_limit()
except OSError as error:
    assert is_file_limit(error) and "20, 64 are needed" in str(error)
else:
    raise AssertionError
"""


def test_a_spare_file_is_lent_at_the_limit() -> None:
    """Twice, and the second borrower keeps it: nothing fails."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)
