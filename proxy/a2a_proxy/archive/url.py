"""Parsing of archive URLs. Needs no optional library, because a proxy checks the URL before it starts."""

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
    """Parse the URL of an archive. Raises ArchiveError if it is not one."""
    try:
        parts = urlsplit(url)
    except ValueError:  # `s3://[`
        raise ArchiveError(f"{url!r} is not the URL of an archive", _EXAMPLES) from None
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return ArchiveUrl("", unquote(parts.path))
    if parts.scheme == "s3" and _BUCKET_PATTERN.fullmatch(parts.netloc) and not (parts.query or parts.fragment):
        return ArchiveUrl(parts.netloc, unquote(parts.path).strip("/"))
    raise ArchiveError(f"{url!r} is not the URL of an archive", _EXAMPLES)


def check_archive_url(url: str) -> None:
    """Check that a proxy can archive to `url`.

    Raises ArchiveError if the URL is invalid, or if the extra or the folder is missing.
    """
    target = parse_archive_url(url)
    for name in ("obstore", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise missing_library_error(name)
    if target.bucket:
        s3_endpoint(os.environ)
    elif not Path(target.path).is_dir():
        raise absent_archive_error(url)


def s3_endpoint(environ: Mapping[str, str]) -> str:
    """Return the S3 endpoint, or an empty string for Amazon's own. Raises ArchiveError if it is not a URL."""
    name = next((each for each in _ENDPOINT_VARIABLES if environ.get(each)), "")
    if name and not _ENDPOINT_PATTERN.fullmatch(environ[name]):
        raise ArchiveError(f"{name} is not a URL", "for example http://localhost:9000")
    return environ[name] if name else ""


def absent_archive_error(url: str) -> ArchiveError:
    """Return the error for a bucket or folder that does not exist."""
    return ArchiveError(f"{url}: no such bucket or folder", "create it first, or check the name")
