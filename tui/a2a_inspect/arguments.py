"""Classification of command-line words before any file is opened."""

from pathlib import Path


def is_recording_path(word: str) -> bool:
    """Return whether `word` is a path rather than a mistyped command."""
    return not word.startswith("-") and ("/" in word or "." in word or Path(word).exists())
