"""What a storage says that does not do what it was asked, in words that are the same each time it says so."""

from __future__ import annotations

import re

from obstore import exceptions

from a2a_proxy.archive.errors import ArchiveError, GoneError
from a2a_proxy.archive.url import absent_archive_error

_STATUS_PATTERN = re.compile(r"status code: (\d{3})(?:(?! Debug source).)*?(?:<Code>(\w+)</Code>| Debug source|$)")
_SYSTEM_PATTERN = re.compile(r'message: "([^"]+)"')
_NO_CREDENTIALS = ("redential", "api/token", "169.254.")
"""What an error has in it where none were given: then the addresses are asked where cloud machines find theirs."""
_REFUSED_ERRORS = (exceptions.UnauthenticatedError, exceptions.PermissionDeniedError, PermissionError)
_CREDENTIALS_HINT = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do; of a folder its permissions"
_MAX_MESSAGE = 200
"""Characters of a library's error that are told."""


def gone_error(url: str, key: str, error: Exception) -> ArchiveError:
    """What was asked for is not there."""
    if "NoSuchBucket" in str(error) or not key:
        return absent_archive_error(url)
    return GoneError(f"{url} has no {key}", "it was deleted, or a rule of the bucket has removed it")


def storage_error(url: str, doing: str, error: BaseException) -> ArchiveError:
    """What went wrong while something was done: `list manifests`."""
    said = " ".join(str(error).split())
    if "NoSuchBucket" in said:
        return absent_archive_error(url)
    if any(word in said for word in _NO_CREDENTIALS):
        return ArchiveError(f"{url}: access is refused: there are no credentials", _CREDENTIALS_HINT)
    answered = _STATUS_PATTERN.search(said)
    status, code = answered.groups() if answered else ("", "")
    if isinstance(error, _REFUSED_ERRORS) or status in ("401", "403"):
        return ArchiveError(f"{url}: access is refused{f' ({code})' if code else ''}: {doing}", _CREDENTIALS_HINT)
    folder = url.startswith("file:")
    hint = "check the folder, and whether its disk has room" if folder else "check the URL and AWS_ENDPOINT_URL"
    if status:
        return ArchiveError(f"{url} cannot be used: it answers {status}{f' ({code})' if code else ''}", hint)
    if "HTTP error" in said:
        system = _SYSTEM_PATTERN.search(said)
        return ArchiveError(f"{url} cannot be reached{f': {system[1]}' if system else ''}", hint)
    return ArchiveError(f"{url} cannot be used ({doing}): {said.partition(' Debug source')[0][:_MAX_MESSAGE]}", hint)
