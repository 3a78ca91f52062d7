"""What a word on the command line is, as long as nothing was opened."""

from __future__ import annotations

from pathlib import Path


def is_recording_path(word: str) -> bool:
    """A path, not a mistyped command."""
    return not word.startswith("-") and ("/" in word or "." in word or Path(word).exists())
