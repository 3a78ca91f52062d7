"""What the URL of an archive means. Needs nothing that has to be installed: a proxy looks at it before it starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from a2a_proxy.archive.errors import ArchiveError, missing

_EXAMPLES = "for example s3://bucket/prefix, or file:///srv/a2a"


class Target(NamedTuple):
    """A bucket with a prefix, or a folder."""

    bucket: str
    """Empty for a folder."""
    path: str


def parsed(url: str) -> Target:
    """What a URL names. Raises ArchiveError where it is none of an archive."""
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return Target("", unquote(parts.path))
    if parts.scheme == "s3" and parts.netloc and not (parts.query or parts.fragment):
        return Target(parts.netloc, unquote(parts.path).strip("/"))
    raise ArchiveError(f"{url!r} is no place for an archive", _EXAMPLES)


def check(url: str) -> None:
    """May a proxy be started with it? Raises ArchiveError where the extra or the folder is missing too."""
    target = parsed(url)
    for name in ("obstore", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise missing(name)
    if not target.bucket and not Path(target.path).is_dir():
        raise absent(url)


def absent(url: str) -> ArchiveError:
    """There is nothing at this URL."""
    return ArchiveError(f"{url}: there is no such bucket or folder", "make it first, or check the name")
