"""`a2a-inspect merge`: copy the sessions of several recordings into one file."""

import tempfile
from pathlib import Path

import msgspec

from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.recording.cassette.file import check_replaceable, write_cassette
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.merge import (
    MergedSession,
    SkippedSession,
    check_merge_target,
    check_not_source,
    merge_sessions,
    plan_merge,
)

OVERWRITE_HINT = "name another file, or replace it with --overwrite"


class MergeOptions(msgspec.Struct, frozen=True):
    """Options of the command."""

    overwrite: bool = False
    dry_run: bool = False
    as_json: bool = False


def merge_recordings(target: Path, recordings: tuple[Path, ...], options: MergeOptions) -> None:
    """Merge the recordings into `target`, a cassette if its name ends with `.jsonl`, and print the
    sessions; with `dry_run` only print them.

    Raises:
        UserError: a recording cannot be read, or the target cannot be written.
    """
    writes_cassette = target.name.endswith(".jsonl")
    merge = _merge_as_cassette if writes_cassette else merge_sessions
    try:
        if writes_cassette:
            check_replaceable(target, overwrite=True)
        if target.exists() and not options.overwrite:
            raise UserError(f"{target} exists", OVERWRITE_HINT)
        with MultiReader(recordings) as several:
            if writes_cassette:
                check_not_source(several, target)
            else:
                check_merge_target(several, target, overwrite=options.overwrite)
            sessions, skipped_sessions = plan_merge(several)
            if not options.dry_run:
                sessions = merge(several, target, overwrite=options.overwrite)
            if options.as_json:
                _print_merge_objects(sessions, skipped_sessions, done=not options.dry_run)
            else:
                _print_merge(
                    target,
                    sessions,
                    skipped_sessions,
                    "would merge" if options.dry_run else "merged",
                )
    except OSError as wrong:
        raise UserError(
            f"cannot write {target}: {wrong.strerror}", "choose a folder that you may write to"
        ) from wrong


def _merge_as_cassette(
    several: MultiReader, target: Path, *, overwrite: bool
) -> list[MergedSession]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "merged.a2a.db"
        sessions = merge_sessions(several, database)
        with Recording(database) as recording:
            write_cassette(recording, target, overwrite=overwrite)
    return sessions


def _print_merge_objects(
    merged: list[MergedSession], skipped: list[SkippedSession], *, done: bool
) -> None:
    """Print one session per line with stable names; `as` is its number in the new file, null if it
    was left out."""
    for number, each in enumerate(merged, 1):
        more = {"as": number, "frames": each.frames, "ended": bool(each.row.how), "done": done}
        print_json(_session_object(each) | more)
    for other in skipped:
        print_json(
            _session_object(other) | {"as": None, "in": other.better.recording.path, "done": done}
        )


def _session_object(session: MergedSession | SkippedSession) -> dict[str, object]:
    facts = session.row.facts
    return {
        "recording": session.member.recording.path,
        "session": session.row.id,
        "uuid": facts.uuid,
        "started": text.format_utc(facts.started),
        "upstreams": list(facts.upstreams),
    }


def _print_merge(
    target: Path, merged: list[MergedSession], skipped: list[SkippedSession], verb: str
) -> None:
    for number, each in enumerate(merged, 1):
        facts = each.row.facts
        where = ", ".join(facts.upstreams)
        ended = "" if each.row.how else "  (not ended)"
        path = each.member.recording.path
        print_line(
            f"{verb} session {each.row.id} of {path} as {number}  "
            f"{text.format_date_time(facts.started)}  "
            f"{where}  {text.format_count(each.frames, 'frame')}{ended}"
        )
    for other in skipped:
        print_line(
            f"left out session {other.row.id} of {other.member.recording.path}: it is in "
            f"{other.better.recording.path}"
        )
    print_line(f"{verb} {text.format_count(len(merged), 'session')} into {target}")
