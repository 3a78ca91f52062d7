"""`a2a-inspect merge`: several recordings into one file, by whole sessions."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from a2a_proxy.cli import text
from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.merge import Left, Taken, check_target, merge, plan
from a2a_proxy.recording.several import Several


class Options(msgspec.Struct, frozen=True):
    """What was asked for."""

    overwrite: bool = False
    dry_run: bool = False
    as_json: bool = False


def merge_recordings(target: Path, recordings: tuple[Path, ...], options: Options) -> None:
    """Make `target` of these, and say what is in it; with `dry_run` only say it.

    Raises:
        UserError: a recording cannot be read, or the target may not be written.
    """
    if target.name.endswith(".jsonl"):
        raise UserError(f"{target} would be a recording, not a cassette", "name it *.a2a.db, and `export` that")
    if target.exists() and not options.overwrite:
        raise UserError(f"{target} exists", "name another file, or let it be replaced with --overwrite")
    try:
        with Several(recordings) as several:
            check_target(several, target, overwrite=options.overwrite)
            taken, left = plan(several)
            if not options.dry_run:
                taken = merge(several, target, overwrite=options.overwrite)
            if options.as_json:
                _tell_objects(taken, left, done=not options.dry_run)
            else:
                _tell(target, taken, left, "would merge" if options.dry_run else "merged")
    except RecordingError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
    except OSError as wrong:
        raise UserError(f"cannot write {target}: {wrong.strerror}", "choose a folder that you may write to") from wrong


def _tell_objects(taken: list[Taken], left: list[Left], *, done: bool) -> None:
    """One session a line, with stable names; `as` is its number in the new file, null where it was left out."""
    for number, each in enumerate(taken, 1):
        more = {"as": number, "frames": each.frames, "ended": bool(each.row.how), "done": done}
        print(json.dumps(_facts(each) | more))
    for other in left:
        print(json.dumps(_facts(other) | {"as": None, "in": other.better.recording.path, "done": done}))


def _facts(of: Taken | Left) -> dict[str, object]:
    facts = of.row.facts
    return {
        "recording": of.member.recording.path,
        "session": of.row.id,
        "uuid": facts.uuid,
        "started": text.utc(facts.started),
        "upstreams": list(facts.upstreams),
    }


def _tell(target: Path, taken: list[Taken], left: list[Left], done: str) -> None:
    for number, each in enumerate(taken, 1):
        facts = each.row.facts
        where = ", ".join(facts.upstreams)
        ended = "" if each.row.how else "  (not ended)"
        path = visible(each.member.recording.path)
        print(
            f"{done} session {each.row.id} of {path} as {number}  {text.day(facts.started)}  "
            f"{visible(where)}  {text.plural(each.frames, 'frame')}{ended}"
        )
    for other in left:
        print(
            f"left out session {other.row.id} of {visible(other.member.recording.path)}: "
            f"it is in {visible(other.better.recording.path)}"
        )
    print(f"{done} {text.plural(len(taken), 'session')} into {visible(str(target))}")
