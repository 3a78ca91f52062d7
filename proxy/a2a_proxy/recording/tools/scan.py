"""Search for secrets in a recording or cassette.

Everything is read twice, so that a secret recognized late is also found in earlier frames.

The lines of a cassette are searched too, because members that the importer ignores are committed as
well.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.recording.cassette.file import is_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, label_place
from a2a_proxy.redaction.policy import RedactionPolicy
from a2a_proxy.redaction.scanner import Clue, ScanningRedactor, Sight

_LABEL_PATTERN = re.compile(rb"redacted-[0-9a-f]{12}")
_EXCERPT_CHARS = 3
"""Characters of a secret that are shown if it is at least four times as long."""


class Secret(msgspec.Struct, frozen=True):
    """One secret at one place."""

    place: str
    """`#3` or `#3.2`; `#2:3.2` if there are several sessions; `session 1`; `line 7` is a line of
    the file."""
    where: str
    """Path in the payload, `header:authorization`, or the name of a field."""
    clue: Clue
    secret: bytes
    """Must not be shown; `excerpt` may be."""

    @property
    def excerpt(self) -> str:
        """Beginning of the secret, if it is long enough to stay secret, and its length."""
        shown = (
            self.secret[:_EXCERPT_CHARS].decode("utf-8", "replace")
            if len(self.secret) >= 4 * _EXCERPT_CHARS
            else ""
        )
        return f"{shown}… ({len(self.secret)} bytes)"


class ScanResult(msgspec.Struct, frozen=True):
    """Result of a scan."""

    secrets: list[Secret]
    labels: int
    """Number of distinct labels: secrets that were redacted before."""
    values: int
    """Number of frames, exchanges and other objects that were scanned."""


def scan_recording(
    recording: Recording, policy: RedactionPolicy, file: Path | None = None, *, random: bool = True
) -> ScanResult:
    """Scan a whole recording.

    `file` is the file that it was read from. `random` includes words that look machine-generated.

    Raises RecordingError, OSError.
    """
    scanner = ScanningRedactor(policy, random=random)
    several = len(recording.read_sessions()) > 1
    labels: set[bytes] = set()
    for _ in _find_sights(recording, scanner, several, labels):  # to collect the secrets
        pass
    found: list[Secret] = []
    values = 0
    for place, sights in _find_sights(recording, scanner, several, labels):
        values += 1
        found += [Secret(place, each.where, each.clue, each.secret) for each in sights]
    if file is not None and is_cassette(file):
        known = {each.secret for each in found}
        found += [each for each in _scan_lines(file, scanner) if each.secret not in known]
    return ScanResult(found, len(labels), values)


def _find_sights(
    recording: Recording, scanner: ScanningRedactor, several: bool, labels: set[bytes]
) -> Iterator[tuple[str, list[Sight]]]:
    for session in recording.read_sessions():
        yield label_place(session.id), _scan_session(session, scanner)
        for connection in recording.read_connections(session.id):
            yield (
                f"{label_place(session.id)}: connection {connection.connection.id}",
                scanner.in_value(connection.connection),
            )
        heads = {}
        for row in recording.read_exchanges(session.id):
            heads[row.exchange.id] = row.exchange
            labels.update(_LABEL_PATTERN.findall(repr(row.exchange).encode()))
            yield (
                label_place(session.id, row.exchange.id, with_session=several),
                scanner.in_exchange(row.exchange),
            )
        for frame in recording.frames_after(0, session=session.id):
            number = frame.frame.exchange
            labels.update(_LABEL_PATTERN.findall(frame.frame.payload))
            seq = frame.frame.seq if number else -1
            place = label_place(session.id, number, seq, with_session=several)
            if not number:
                place += f": connection {frame.frame.connection}"
            yield place, scanner.in_frame(frame.frame, heads.get(number))
        for task in recording.read_tasks(session.id):
            yield f"task {task.task.task_id[:8]}", scanner.in_value(task.task)
        for finding in recording.read_findings(session.id):
            yield f"finding {finding.finding.rule}", scanner.in_value(finding.finding)
        for note in recording.read_notes(session.id):
            yield "note", scanner.in_texts("text", (note.note.text,))


def _scan_session(session: SessionRow, scanner: ScanningRedactor) -> list[Sight]:
    facts = session.facts
    texts_by_place: list[tuple[str, Iterable[str]]] = [
        ("command", facts.command),
        ("upstreams", facts.upstreams),
    ]
    texts_by_place += [
        ("listens", facts.listens),
        ("complete", (session.complete,)),
        ("redaction", facts.redaction),
    ]
    texts_by_place.append(("names", facts.names))
    return [sight for name, texts in texts_by_place for sight in scanner.in_texts(name, texts)]


def _scan_lines(file: Path, scanner: ScanningRedactor) -> Iterator[Secret]:
    """Yield secrets in the lines of a cassette, including members that are not imported.

    The file was imported before, so each line is JSON.
    """
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            value = json.loads(line)
            for sight in scanner.in_json(value):
                if sight.clue is not Clue.RANDOM:
                    yield Secret(f"line {number}", sight.where, sight.clue, sight.secret)
