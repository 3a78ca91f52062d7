"""Translation of storage errors into messages that are the same for the same cause."""

from __future__ import annotations

import re

from obstore import exceptions

from a2a_proxy.archive.errors import ArchiveError, GoneError
from a2a_proxy.archive.url import absent_archive_error

_STATUS_PATTERN = re.compile(r"status code: (\d{3})(?:(?! Debug source).)*?(?:<Code>(\w+)</Code>| Debug source|$)")
_SYSTEM_PATTERN = re.compile(r'message: "([^"]+)"')
_NO_CREDENTIALS = ("redential", "api/token", "169.254.")
"""Parts of an error message if no credentials were given: obstore then queries the metadata addresses of cloud
machines.
"""
_REFUSED_ERRORS = (exceptions.UnauthenticatedError, exceptions.PermissionDeniedError, PermissionError)
_CREDENTIALS_HINT = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions; for a folder, its file permissions"
)
_MAX_MESSAGE = 200
"""Number of characters of a library's error that are shown."""


def gone_error(url: str, key: str, error: Exception) -> ArchiveError:
    """Return the error for an object that does not exist."""
    if "NoSuchBucket" in str(error) or not key:
        return absent_archive_error(url)
    return GoneError(f"{url} has no {key}", "it was deleted, by hand or by a lifecycle rule of the bucket")


def storage_error(url: str, doing: str, error: BaseException) -> ArchiveError:
    """Return the error for a failed action. `doing` names the action: `list manifests`."""
    said = " ".join(str(error).split())
    if "NoSuchBucket" in said:
        return absent_archive_error(url)
    if any(word in said for word in _NO_CREDENTIALS):
        return ArchiveError(f"{url}: access is refused: no credentials were found", _CREDENTIALS_HINT)
    answered = _STATUS_PATTERN.search(said)
    status, code = answered.groups() if answered else ("", "")
    if isinstance(error, _REFUSED_ERRORS) or status in ("401", "403"):
        return ArchiveError(f"{url}: access is refused{f' ({code})' if code else ''}: {doing}", _CREDENTIALS_HINT)
    folder = url.startswith("file:")
    hint = "check the folder and the free space on its disk" if folder else "check the URL and AWS_ENDPOINT_URL"
    if status:
        return ArchiveError(f"{url} cannot be used: it answers {status}{f' ({code})' if code else ''}", hint)
    if "HTTP error" in said:
        system = _SYSTEM_PATTERN.search(said)
        return ArchiveError(f"{url} cannot be reached{f': {system[1]}' if system else ''}", hint)
    return ArchiveError(f"{url} cannot be used ({doing}): {said.partition(' Debug source')[0][:_MAX_MESSAGE]}", hint)
