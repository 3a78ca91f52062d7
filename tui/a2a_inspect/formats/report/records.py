"""Conversations, exchanges, frames, findings and tasks as plain JSON values for the page, already
in readable form.

The page does not format numbers: all displayed words are created here, as the other commands write
them. Rows are lists because there are many; `page/data.js` names their members.
"""

import json
from collections.abc import Sequence

import msgspec

from a2a_inspect.data.ending_words import ending_facts
from a2a_inspect.data.finding_counts import ending_words
from a2a_inspect.data.finding_words import evidence_words
from a2a_inspect.data.frame_objects import frame_object
from a2a_inspect.data.frame_summary import flatten_line_ends
from a2a_inspect.data.generation_gaps import missed_generation_words, operation_of
from a2a_inspect.data.references import format_place
from a2a_inspect.lanes.layout import format_elapsed
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane
from a2a_proxy.model.event import TaskState, state_label
from a2a_proxy.model.values import ArtifactState, Exchange, Finding, Frame, Task
from a2a_proxy.model.wire import Headers
from a2a_proxy.present import generations, text
from a2a_proxy.present.text import exchange_object
from a2a_proxy.protocol.completeness import COMPLETE
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, TaskRow
from a2a_proxy.recording.write.note_writer import NotePlace
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.ending import Ending

MAX_PAYLOAD = 256 << 10
"""Maximum characters of a payload in the report."""
_MAX_ARTIFACTS = 4
"""Artifacts of a task that its line in the overview names."""
_MS = 1_000_000


def session_record(session: SessionRow) -> dict[str, object]:
    """Return a session: its time, addresses, completeness and redaction."""
    facts = session.facts
    return {
        "number": session.id,
        "started": text.format_utc(facts.started),
        "ways": text.session_routes(facts),
        "capture": session.missing_text or session.choice_text or COMPLETE,
        "redaction": list(facts.redaction),
    }


def row_record(row: LaneRow, exchange: int, detail: int) -> list[object]:
    """Return a row of the diagram.

    `exchange` and `detail` (its frame or finding) are record numbers, or -1.
    """
    before = (
        text.format_duration(row.since_before)
        if row.since_start and row.what is LaneRowKind.FRAME
        else ""
    )
    words = (
        f"{text.format_duration(row.since_before)} of silence"
        if row.what is LaneRowKind.PAUSE
        else flatten_line_ends(row.text)
    )
    return [
        str(row.what),
        format_elapsed(row.since_start),
        f"+{before}" if before else "",
        row.source,
        row.target,
        words,
        f"#{row.exchange}.{row.seq}" if row.exchange and row.seq >= 0 else "",
        row.kind.name.lower() if row.kind is not None else "",
        row.severity.name.lower() if row.severity is not None else "",
        exchange,
        detail,
    ]


def detail_record(
    row: int, frame: Frame, exchange: Exchange | None, notes: Sequence[str]
) -> dict[str, object]:
    """Return a frame with its payload; `row` is the number of its row."""
    facts = frame_object(frame, exchange) if exchange is not None else {"seq": frame.seq}
    value = (
        facts.pop("payload", None) if exchange is not None else readable_payload(frame, exchange)
    )
    payload, form = _payload_text(value)
    if is_withheld(frame):
        payload = "payload not recorded"
    record: dict[str, object] = {
        "row": row,
        "facts": facts,
        "form": form,
        "payload": payload[:MAX_PAYLOAD],
    }
    if len(payload) > MAX_PAYLOAD:
        record["cut"] = (
            f"the first {text.format_size(MAX_PAYLOAD)} of {text.format_size(len(payload))}"
        )
    return {**record, **({"notes": list(notes)} if notes else {})}


def _payload_text(value: object) -> tuple[str, str]:
    """Return the payload as text and its kind.

    JSON stays text, and the page indents it, because JavaScript numbers would lose digits.
    """
    if value is None or isinstance(value, str):
        return value or "", "text"
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=0).decode(), "json"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, ensure_ascii=False), "json"
    except RecursionError:
        return "nested too deeply to show", "text"


def exchange_record(
    row: ExchangeRow, notes: Sequence[str], first: int, ending: Ending | None
) -> dict[str, object]:
    """Return an exchange with its header fields; `first` is the number of its first row, or -1."""
    exchange = row.exchange
    facts: dict[str, object] = {}
    if ending is not None:
        facts["why it did not end well"] = ending_words(row, ending)
        facts |= ending_facts(ending)
    facts |= {
        name: value
        for name, value in exchange_object(exchange).items()
        if value not in (None, "", [])
    }
    return {
        "place": format_place(NotePlace(row.session, exchange.id)),
        "title": text.exchange_title(exchange),
        "manner": text.binding_and_dialect(exchange),
        "outcome": text.outcome_label(exchange),
        "took": text.latency_label(exchange),
        "facts": facts,
        "headers": [
            *_header_rows("request", exchange.request_headers),
            *_header_rows("response", exchange.response_headers),
            *_header_rows("trailer", exchange.trailers),
        ],
        "notes": list(notes),
        "row": first,
    }


def _header_rows(side: str, fields: Headers) -> list[list[str]]:
    return [[side, name.decode("latin-1"), value.decode("latin-1")] for name, value in fields]


def finding_record(session: int, finding: Finding, row: int) -> dict[str, object]:
    """Return a finding; `row` is the number of the row it is about, or -1."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.name.lower(),
        "summary": finding.summary,
        "place": format_place(NotePlace(session, finding.exchange, finding.seq))
        if finding.exchange
        else f"{session}",
        "connection": 0 if finding.exchange else finding.connection,
        "at": text.format_utc(finding.at),
        "evidence": evidence_words(finding),
        "confidence": finding.confidence,
        "task": finding.task_id,
        "row": row,
    }


def rule_record(name: str) -> dict[str, object]:
    """Return the text of a rule; for a decoder finding only its name."""
    rule = all_rules().get(name)
    if rule is None:
        return {"id": name, "title": "", "what": "", "why": "", "section": ""}
    facts = {
        "id": rule.id,
        "title": rule.title,
        "what": rule.description,
        "why": rule.rationale,
        "section": rule.section,
    }
    return {**facts, "draft": rule.draft}


def lane_record(lane: PartyLane) -> list[str]:
    """Return a party: its name and role."""
    return [lane.name, str(lane.role)]


def task_record(recording: Recording, row: TaskRow, start: int) -> dict[str, object]:
    """Return the history of a task. Times are in ms since `start` (ns), negative before the first
    displayed frame."""
    task = row.task
    return {
        "id": task.task_id,
        "agent": task.agent,
        "context": task.context_id,
        "states": [
            [(at - start) / _MS, state_label(state), format_elapsed(at - start)]
            for at, state in task.states
        ],
        "end": (max(task.last, *(at for at, _ in task.states), task.first) - start) / _MS,
        "generations": generations.generations_line(
            task, lambda number: operation_of(recording, row.session, number)
        ),
        "missed": [
            [(gap.at - start) / _MS, missed_generation_words(recording, row.session, gap)]
            for gap in task.missed
        ],
        "artifacts": [_artifact_words(each) for each in task.artifacts],
        "messages": task.messages,
    }


def task_summary(row: TaskRow, first_row: int) -> dict[str, object]:
    """Return a task in one line: its states, duration, artifacts and outcome; `first_row` is the
    number of the first row of its first exchange, or -1."""
    task = row.task
    artifacts = [_artifact_words(each) for each in task.artifacts[:_MAX_ARTIFACTS]]
    if more := len(task.artifacts) - len(artifacts):
        artifacts.append(f"{more} more")
    end = task.states[-1][0] if task.states and _is_terminal(task.states[-1][1]) else task.last
    return {
        "id": task.task_id,
        "agent": task.agent,
        "states": state_names(task),
        "outcome": state_label(task.states[-1][1]) if task.states else "no state seen",
        "took": text.format_duration(end - task.first) if end > task.first else "",
        "artifacts": artifacts,
        "messages": task.messages,
        "place": format_place(NotePlace(row.session, task.exchanges[0])) if task.exchanges else "",
        "row": first_row,
    }


def _is_terminal(state: int) -> bool:
    return state in TaskState._value2member_map_ and TaskState(state).terminal


def _artifact_words(each: ArtifactState) -> str:
    end = "complete" if each.complete else "not complete"
    words = (
        f"{text.format_count(max(each.chunks, 1), 'chunk')}, {text.format_size(each.size)}, {end}"
    )
    return f"{each.name or each.artifact_id} ({words})"


def state_names(task: Task) -> str:
    """Return the passed states: `submitted > working > completed`."""
    return " > ".join(state_label(state) for _, state in task.states)
