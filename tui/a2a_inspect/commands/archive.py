"""`a2a-inspect archive`: upload recordings to an archive, list its segments, and download
exchanges."""

from __future__ import annotations

import contextlib
import datetime
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from a2a_inspect.data.recording_choice import open_recording
from a2a_proxy.archive.errors import archive_extra
from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line, print_note
from a2a_proxy.recording.query.kinds import InvalidValue, parse_length

if TYPE_CHECKING:
    from a2a_proxy.archive.manifest import Manifest
    from a2a_proxy.archive.search import SegmentQuery
    from a2a_proxy.archive.store import ArchiveStore

_NS = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND_FRACTION = re.compile(r"[.,](\d+)", re.ASCII)
"""Fraction of a second in a written time."""
_MAX_LISTED_KEYS = 4
"""Maximum number of files named in one line."""
_ID_KINDS = ("task", "context", "trace")


class ArchiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the archive commands."""

    archive_id: str = ""
    verify: bool = False
    verbose: bool = False
    as_json: bool = False


def upload_recording(path: Path, url: str, options: ArchiveOptions) -> None:
    """Upload a recording and print what was added to the archive.

    Raises:
        UserError: the recording or the archive cannot be used.
    """
    with _open_archive(url, options) as place, open_recording(path) as recording:
        from a2a_proxy.archive.destination import check_id, proxy_id
        from a2a_proxy.archive.upload import SessionUpload

        with state_directory_errors():
            proxy = (
                check_id(options.archive_id)
                if options.archive_id
                else proxy_id(file_layout.state_dir())
            )
        frames = 0
        put_ones: list[Manifest] = []
        for session in recording.read_sessions():
            supervisor = SessionUpload(place, proxy, recording, session)
            frames += supervisor.put_segments(include_rest=True, on_segment=put_ones.append)
            if supervisor.missing_frames:
                message = (
                    f"{url} has session {session.facts.uuid} of a recording that had "
                    f"{supervisor.missing_frames:,} fewer frames"
                )
                raise UserError(message, "store it separately: use another --archive-id")
        if options.as_json:
            for each in put_ones:
                print_json(_segment_object(each))
            return
        if not put_ones:
            print_line(f"{url} already has all of {path}")
            return
        size = text.format_size(place.traffic.put)
        summary = (
            f"{text.format_count(frames, 'frame')} in "
            f"{text.format_count(len(put_ones), 'segment')}, {size}"
        )
        print_line(f"put {summary} as proxy {proxy} into {url}")


def list_segments(url: str, words: dict[str, str], options: ArchiveOptions) -> int:
    """Print the segments that may contain matching exchanges, and return the exit code.

    Raises:
        UserError: the archive cannot be read, or a time is not valid.
    """
    with _open_archive(url, options) as place:
        from a2a_proxy.archive.search import find_gone_tables, find_segments

        found = find_segments(place, _parse_query(words))
        lost = find_gone_tables(place, found)
        faults = [
            fault
            for each in found
            for fault in (_verify_segment(place, each) if options.verify else ())
        ]
    for each in found:
        missing = lost.get(each.cut.name, [])
        if options.as_json:
            print_json({**_segment_object(each), "gone": missing})
        else:
            print_line(_segment_line(each, missing))
    for fault in faults:
        print_note(f"a2a-inspect: error: {fault}")
    if not options.as_json:
        frames = sum(each.frames.rows for each in found)
        data = sum(each.frames.byte_count + each.facts.byte_count for each in found)
        summary = (
            f"{text.format_count(len(found), 'segment')}, {text.format_count(frames, 'frame')}, "
            f"{text.format_size(data)}"
        )
        print_line(
            summary + (", all match their manifests" if options.verify and not faults else "")
        )
        if lost:
            many = text.format_count(len(lost), "segment")
            print_line(
                f"{many} with missing files, perhaps deleted by a lifecycle rule of the bucket"
            )
        print_line(_request_counts(place))
    return int(bool(faults))


def download_recording(
    url: str, words: dict[str, str], target: Path, options: ArchiveOptions
) -> None:
    """Write matching exchanges to a new recording and print what it contains.

    Raises:
        UserError: no filter was given, nothing matches it, or a file cannot be read or written.
    """
    named_words = {name: word for name, word in words.items() if word}
    if not named_words:
        raise UserError(
            "no filter given for the exchanges to fetch",
            f"for example: a2a-inspect archive fetch {url} --task ID --to F",
        )
    what = ", ".join(f"{name} {word}" for name, word in sorted(named_words.items()))
    with _open_archive(url, options) as place:
        from a2a_proxy.archive.restore import restore_recording

        brought = restore_recording(place, _parse_query(words), what, target)
    if options.as_json:
        traffic = {
            "lists": place.traffic.lists,
            "gets": place.traffic.gets,
            "bytes": place.traffic.got,
        }
        print_json({**msgspec.to_builtins(brought), **traffic})
        return
    calls = (
        f"{text.format_count(brought.exchanges, 'exchange')} with "
        f"{text.format_count(brought.frames, 'frame')}"
    )
    print_line(
        f"fetched {calls} from {text.format_count(brought.segments, 'segment')} into {target}"
    )
    if brought.gone:
        print_line(
            "missing in the archive, perhaps deleted by a lifecycle rule: "
            f"{_join_keys(brought.gone)}; the recording may be incomplete"
        )
    print_line(_request_counts(place))


def _request_counts(store: ArchiveStore) -> str:
    """Return the number of requests and bytes in words."""
    traffic = store.traffic
    requests = (
        f"{text.format_count(traffic.lists, 'list')}, {text.format_count(traffic.gets, 'GET')}"
    )
    return f"{requests}, {text.format_size(traffic.got)}"


def _join_keys(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:_MAX_LISTED_KEYS]) + (" ..." if len(keys) > _MAX_LISTED_KEYS else "")


@contextlib.contextmanager
def _open_archive(url: str, options: ArchiveOptions) -> Iterator[ArchiveStore]:
    with archive_extra():
        from a2a_proxy.archive.store import ArchiveStore

        yield ArchiveStore(url, print_note if options.verbose else None)


def _parse_query(words: dict[str, str]) -> SegmentQuery:
    from a2a_proxy.archive.search import LATEST, SegmentQuery

    now = time.time_ns()
    return SegmentQuery(
        since=_parse_time("--since", words["since"], now) if words["since"] else 0,
        until=_parse_time("--until", words["until"], now) if words["until"] else LATEST,
        idents=tuple((kind, words[kind]) for kind in _ID_KINDS if words[kind]),
    )


def _parse_time(option: str, value: str, now: int) -> int:
    """Parse a time as users write it and return ns since the epoch. Raises UserError."""
    from a2a_proxy.archive.search import LATEST

    with contextlib.suppress(InvalidValue):
        return max(now - parse_length(value), 0)
    try:
        at = datetime.datetime.fromisoformat(value)
    except ValueError:
        hint = "for example 2h (ago), 2026-11-22, or 2026-11-22T08:30 (UTC)"
        raise UserError(f"{option}: {value!r} is not a time", hint) from None
    seconds = (
        at.replace(microsecond=0, tzinfo=at.tzinfo or datetime.UTC) - _EPOCH
    ) // datetime.timedelta(seconds=1)
    part = _SECOND_FRACTION.search(value)  # to the ns, as `ls` prints times: a datetime has only us
    return min(max(seconds * _NS + int(part[1][:9].ljust(9, "0") if part else 0), 0), LATEST)


def _verify_segment(store: ArchiveStore, manifest: Manifest) -> Iterator[str]:
    from a2a_proxy.archive.errors import ArchiveError
    from a2a_proxy.archive.files import describe_file

    for table in ("frames", "facts"):
        key = manifest.cut.object_key(table)
        try:
            if describe_file(store.read_object(key), key) != manifest.stored_file(table):
                yield f"{key} does not match its manifest: it was changed"
        except ArchiveError as wrong:
            yield wrong.message


def _segment_line(manifest: Manifest, missing: list[str]) -> str:
    cut = manifest.cut
    agents = ", ".join(manifest.agents)
    size = text.format_size(manifest.frames.byte_count + manifest.facts.byte_count)
    many = (
        f"{text.format_count(manifest.frames.rows, 'frame')}  "
        f"{text.format_count(manifest.tasks, 'task')}  {size}"
    )
    times = f"{text.format_utc(cut.since)} to {text.format_utc(cut.until)}"
    lost = f"  missing: {' and '.join(missing)}" if missing else ""
    return f"{times}  proxy {cut.proxy}  {cut.name.rpartition('/')[2]}  {many}  {agents}{lost}"


def _segment_object(manifest: Manifest) -> dict[str, object]:
    cut = manifest.cut
    return {
        "key": cut.object_key("frames"),
        "proxy": cut.proxy,
        "session": cut.session,
        "number": cut.number,
        "since": text.format_utc(cut.since),
        "until": text.format_utc(cut.until),
        "over": cut.over,
        "frames": manifest.frames.rows,
        "tasks": manifest.tasks,
        "contexts": manifest.contexts,
        "traces": manifest.traces,
        "agents": list(manifest.agents),
        "bytes": manifest.frames.byte_count + manifest.facts.byte_count,
    }
