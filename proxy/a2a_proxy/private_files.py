"""Creation of files and folders that only the user can read, whatever the umask is."""

import os
from pathlib import Path


def make_private_folder(folder: Path) -> Path:
    """Create the folder, and its parents, readable by the user only whatever the umask is. Raises
    OSError."""
    if not folder.parent.is_dir():
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file that is created readable by the user only, whatever the umask is: an `opener`.
    Raises OSError."""
    return os.open(path, flags, 0o600)
