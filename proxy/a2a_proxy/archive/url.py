"""What the URL of an archive means. Needs nothing that has to be installed: a proxy looks at it before it starts."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from a2a_proxy.archive.errors import ArchiveError, missing_library_error

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ENDPOINT_PATTERN = re.compile(r"https?://[!-~]+")
_BUCKET_PATTERN = re.compile(r"[\w.-]+", re.ASCII)
_EXAMPLES = "for example s3://bucket/prefix, or file:///srv/a2a"


class ArchiveUrl(NamedTuple):
    """A bucket with a prefix, or a folder."""

    bucket: str
    """Empty for a folder."""
    path: str


def parse_archive_url(url: str) -> ArchiveUrl:
    """What a URL names. Raises ArchiveError where it is none of an archive."""
    try:
        parts = urlsplit(url)
    except ValueError:  # `s3://[`
        raise ArchiveError(f"{url!r} is no place for an archive", _EXAMPLES) from None
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return ArchiveUrl("", unquote(parts.path))
    if parts.scheme == "s3" and _BUCKET_PATTERN.fullmatch(parts.netloc) and not (parts.query or parts.fragment):
        return ArchiveUrl(parts.netloc, unquote(parts.path).strip("/"))
    raise ArchiveError(f"{url!r} is no place for an archive", _EXAMPLES)


def check_archive_url(url: str) -> None:
    """May a proxy be started with it? Raises ArchiveError where the extra or the folder is missing too."""
    target = parse_archive_url(url)
    for name in ("obstore", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise missing_library_error(name)
    if target.bucket:
        s3_endpoint(os.environ)
    elif not Path(target.path).is_dir():
        raise absent_archive_error(url)


def s3_endpoint(environ: Mapping[str, str]) -> str:
    """Where S3 is spoken, empty for Amazon's own. Raises ArchiveError where it is no URL."""
    name = next((each for each in _ENDPOINT_VARIABLES if environ.get(each)), "")
    if name and not _ENDPOINT_PATTERN.fullmatch(environ[name]):
        raise ArchiveError(f"{name} is no URL", "for example http://localhost:9000")
    return environ[name] if name else ""


def absent_archive_error(url: str) -> ArchiveError:
    """There is nothing at this URL."""
    return ArchiveError(f"{url}: there is no such bucket or folder", "make it first, or check the name")
