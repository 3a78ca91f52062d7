"""What can go wrong with an archive, in words for the person who named it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from a2a_proxy.recording.errors import RecordingError


class ArchiveError(RecordingError):
    """The archive cannot be used. `hint` says what to do next."""


@contextlib.contextmanager
def extra() -> Iterator[None]:
    """Around the import of what needs the extra. Raises ArchiveError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as wrong:
        if (wrong.name or "").partition(".")[0] not in ("pyarrow", "obstore"):
            raise
        hint = "install it: pip install 'a2a-proxy[lake]'"
        raise ArchiveError(f"the archive needs {wrong.name}, which is not installed", hint) from None
