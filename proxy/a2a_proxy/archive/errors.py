"""What can go wrong with an archive, in words for the person who named it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from a2a_proxy.recording.errors import RecordingError


class ArchiveError(RecordingError):
    """The archive cannot be used. `hint` says what to do next."""


class GoneError(ArchiveError):
    """An object of the archive is not there, or not any more."""


@contextlib.contextmanager
def archive_extra() -> Iterator[None]:
    """Around the import of what needs the extra. Raises ArchiveError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as wrong:
        if (wrong.name or "").partition(".")[0] not in ("pyarrow", "obstore"):
            raise
        raise missing_library_error(wrong.name or "") from None


def missing_library_error(module: str) -> ArchiveError:
    """A library of the extra is not there."""
    hint = "install it: pip install 'a2a-proxy[lake]'"
    return ArchiveError(f"the archive needs {module}, which is not installed", hint)
