"""Errors of an archive, worded for the user who named it."""

import contextlib
from collections.abc import Iterator

from a2a_proxy.installation import install_hint
from a2a_proxy.recording.errors import RecordingError


class ArchiveError(RecordingError):
    """The archive cannot be used. `hint` names the next step."""


class GoneError(ArchiveError):
    """An object of the archive does not exist, or no longer exists."""


@contextlib.contextmanager
def archive_extra() -> Iterator[None]:
    """Guard an import that needs the extra `lake`. Raises ArchiveError if the extra is not
    installed."""
    try:
        yield
    except ModuleNotFoundError as wrong:
        if (wrong.name or "").partition(".")[0] not in ("pyarrow", "obstore"):
            raise
        raise missing_library_error(wrong.name or "") from None


def missing_library_error(module: str) -> ArchiveError:
    """Return the error for a library of the extra that is not installed."""
    return ArchiveError(
        f"the archive needs the extra lake: {module} is not installed", install_hint("lake")
    )
