"""Destination of an archived session: the URL of the archive, the id of the proxy in it, and the
job of the process.

Needs no optional library, because the proxy checks the destination before it starts.
"""

import contextlib
import importlib.util
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from a2a_proxy.archive.errors import ArchiveError, missing_library_error

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ENDPOINT_PATTERN = re.compile(r"https?://[!-~]+")
_BUCKET_PATTERN = re.compile(r"[\w.-]+", re.ASCII)
_EXAMPLES = "for example s3://bucket/prefix, or file:///srv/a2a"
ID_FILE = "archive.id"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


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
    if (
        parts.scheme == "s3"
        and _BUCKET_PATTERN.fullmatch(parts.netloc)
        and not (parts.query or parts.fragment)
    ):
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
    """Return the S3 endpoint, or an empty string for Amazon's own. Raises ArchiveError if it is not
    a URL."""
    name = next((each for each in _ENDPOINT_VARIABLES if environ.get(each)), "")
    if name and not _ENDPOINT_PATTERN.fullmatch(environ[name]):
        raise ArchiveError(f"{name} is not a URL", "for example http://localhost:9000")
    return environ[name] if name else ""


def absent_archive_error(url: str) -> ArchiveError:
    """Return the error for a bucket or folder that does not exist."""
    return ArchiveError(f"{url}: no such bucket or folder", "create it first, or check the name")


def proxy_id(state: Path) -> str:
    """Return the id of the proxies of this state directory. Raises OSError, ArchiveError."""
    file = state / ID_FILE
    if not file.exists():
        made = file.with_name(f".{ID_FILE}.{os.getpid()}")
        made.write_text(f"{uuid.uuid4().hex[:16]}\n")
        with contextlib.suppress(FileExistsError):  # another process created it first
            os.link(made, file)
        made.unlink()
    return check_id(file.read_text().strip(), str(file))


def check_id(name: str, option: str = "--archive-id") -> str:
    """Return the id if it is valid as a part of a key. Raises ArchiveError."""
    if not _ID.fullmatch(name):
        raise ArchiveError(
            f"{option}: {name!r} is not a valid id",
            "use letters, digits, `-`, `_` and `.`, at most 64",
        )
    return name


class ArchiveJob(msgspec.Struct, frozen=True):
    """Source and destination of one archiving process."""

    path: str
    session: str
    url: str
    proxy: str
    every: float
    """Seconds after which pending rows are uploaded, however few they are."""


def encode_job(url: str, proxy: str, every: float) -> str:
    """Return the destination as one command-line argument; see `decode_job`."""
    return msgspec.json.encode((url, proxy, every)).decode()


def decode_job(path: str, session: str, word: str) -> ArchiveJob:
    """Return the job that archives `session` of the recording at `path` to the destination in
    `word`."""
    return ArchiveJob(path, session, *msgspec.json.decode(word, type=tuple[str, str, float]))
