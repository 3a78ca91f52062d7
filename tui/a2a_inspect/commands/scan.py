"""`a2a-inspect cassette scan` and `export --dry-run`: list secrets, and preview what a policy
would remove."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from a2a_inspect.commands.file_loop import process_files
from a2a_inspect.data.recording_choice import open_recording
from a2a_inspect.data.redacted_view import RedactionOptions
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.scan import ScanResult, Secret, scan_recording
from a2a_proxy.redaction.policy import DEFAULT, RedactionPolicy
from a2a_proxy.redaction.scanner import Clue

_CLUE_WORDS = {
    Clue.NAME: "by its name",
    Clue.LOOK: "by its look",
    Clue.RANDOM: "random value",
    Clue.REPEATED: "repeated",
}
_LIST_INDEX = re.compile(r"\[\d+\]")
_MAX_LISTED_SECRETS = 200
"""Secrets of a file that are listed individually."""


def scan_files(paths: tuple[Path, ...], redaction: RedactionOptions, *, as_json: bool) -> int:
    """Print where each secret of the recordings and cassettes is and return the exit code, which
    also covers unreadable files.

    Raises:
        UserError: the options do not form a valid policy.
    """
    policy = redaction.policy or DEFAULT
    if policy.none:
        raise UserError("--redact none finds nothing", "leave out --redact none")

    def look(path: Path) -> bool:
        with open_recording(path) as recording:
            result = _scan_recording(recording, policy, path)
        (_print_secret_objects if as_json else _print_secrets)(path, result)
        return bool(result.secrets)

    return process_files(paths, look)


def preview_redaction(path: Path | None, redaction: RedactionOptions, where: str) -> None:
    """Print what a policy would remove from a recording; nothing is written.

    Raises:
        UserError: the recording cannot be read, the options do not form a valid policy, or there
        is a filter.
    """
    if where:
        raise UserError("--dry-run reads the whole recording", "leave out --filter")
    policy = redaction.policy or DEFAULT
    with open_recording(path) as recording:
        result = (
            _scan_recording(recording, policy, None, random=False)
            if not policy.none
            else ScanResult([], 0, 0)
        )
        frames = recording.count_rows().frames
        applied = {row.id: row.facts.redaction for row in recording.read_sessions()}
    for session, words in applied.items():
        if words:
            print_line(f"session {session} was redacted before: {' '.join(words)}")
    for row in _group_by_path(result.secrets):
        print_line(f"{row['times']:>6}  {row['where']}  {row['excerpt']}  first in {row['place']}")
    if policy.metadata_only:
        print_line(
            f"all payloads would be removed: {text.format_count(frames, 'frame')}; error texts and "
            f"headers too"
        )
    print_line(f"policy: {' '.join(policy.words) or 'default'}; {_preview_words(result, policy)}")


def _preview_words(result: ScanResult, policy: RedactionPolicy) -> str:
    if not result.secrets:
        return (
            "it would replace nothing else" if policy.metadata_only else "it would change nothing"
        )
    different = len({each.secret for each in result.secrets})
    return (
        f"it would replace {text.format_count(different, 'value')} in "
        f"{text.format_count(len(result.secrets), 'place')}"
    )


def _scan_recording(
    recording: Recording, policy: RedactionPolicy, path: Path | None, *, random: bool = True
) -> ScanResult:
    try:
        return scan_recording(recording, policy, path, random=random)
    except OSError as wrong:
        raise UserError(f"cannot read {path}: {wrong.strerror}", "check its permissions") from wrong


def _group_by_path(secrets: Iterable[Secret]) -> list[dict[str, Any]]:
    """Group secrets by path; each group has the number of occurrences and the first one."""
    rows: dict[str, dict[str, Any]] = {}
    for each in secrets:
        where = _LIST_INDEX.sub("[*]", each.where)
        row = rows.setdefault(
            where, {"where": where, "times": 0, "place": each.place, "excerpt": each.excerpt}
        )
        row["times"] += 1
    return sorted(rows.values(), key=lambda row: (-row["times"], row["where"]))


def _print_secrets(path: Path, result: ScanResult) -> None:
    name = str(path)
    for each in result.secrets[:_MAX_LISTED_SECRETS]:
        line = f"{each.place:10}  {each.where}  {_CLUE_WORDS[each.clue]}  {each.excerpt}"
        print_line(f"{name}: {line}")
    if len(result.secrets) > _MAX_LISTED_SECRETS:
        print_line(f"{name}: and {len(result.secrets) - _MAX_LISTED_SECRETS} more")
    labels = f"{text.format_count(result.labels, 'label')} of redacted secrets"
    if result.secrets:
        different = len({each.secret for each in result.secrets})
        print_line(
            f"{name}: {text.format_count(different, 'secret')} in "
            f"{text.format_count(len(result.secrets), 'place')}; {labels}"
        )
    else:
        print_line(f"{name}: no secrets; {labels}; {result.values} values examined")


def _print_secret_objects(path: Path, result: ScanResult) -> None:
    for each in result.secrets:
        facts = {
            "place": each.place,
            "where": each.where,
            "found_by": each.clue.value,
            "excerpt": each.excerpt,
        }
        print_json({"kind": "secret", "recording": str(path), **facts})
    counts = {
        "secrets": len({each.secret for each in result.secrets}),
        "places": len(result.secrets),
    }
    print_json(
        {
            "kind": "summary",
            "recording": str(path),
            **counts,
            "labels": result.labels,
            "values": result.values,
        }
    )
