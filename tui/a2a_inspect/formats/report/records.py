"""What the page is told of a conversation, exchange, frame, finding or task: plain JSON values in people's words.

The page turns no number into words: what it shows stands here as the other commands write it. Rows are lists, since
there are many; `page/data.js` names their members.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from a2a_inspect.commands.ls import state_name
from a2a_inspect.commands.session import evidence_words
from a2a_inspect.commands.show import frame_object
from a2a_inspect.data.frame_summary import flatten_line_ends
from a2a_inspect.data.generation_gaps import missed_generation_words, operation_of
from a2a_inspect.data.references import format_place
from a2a_inspect.lanes.layout import format_elapsed
from a2a_inspect.lanes.model import LaneRow, PartyLane, RowKind
from a2a_proxy.cli.console import exchange_object
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.task import ArtifactState, Task
from a2a_proxy.model.wire import Headers
from a2a_proxy.present import generations, text
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, TaskRow
from a2a_proxy.recording.write.note_writer import NotePlace
from a2a_proxy.redaction.labels import withheld
from a2a_proxy.rules.define.catalogue import all_rules

MAX_PAYLOAD = 256 << 10
"""Characters of a payload that are in the report."""
_MS = 1_000_000


def session_record(session: SessionRow) -> dict[str, object]:
    """A session: when, between whom, whether all of it is there, and what was taken out."""
    facts = session.facts
    return {
        "number": session.id,
        "started": text.format_utc(facts.started),
        "ways": [f"{a} -> {b}" for a, b in zip(facts.listens, facts.upstreams, strict=False)],
        "capture": "complete" if session.complete == "complete" else session.complete or "not ended",
        "redaction": list(facts.redaction),
    }


def row_record(row: LaneRow, exchange: int, detail: int) -> list[object]:
    """A row of the diagram; `exchange` and `detail`, its frame or finding, are numbers of records, -1 for none."""
    before = text.format_duration(row.since_before) if row.since_start and row.what is RowKind.FRAME else ""
    words = (
        f"{text.format_duration(row.since_before)} of silence"
        if row.what is RowKind.PAUSE
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


def detail_record(row: int, frame: Frame, exchange: Exchange | None, notes: Sequence[str]) -> dict[str, object]:
    """A frame with its payload; `row` is the number of its row."""
    facts = frame_object(frame, exchange) if exchange is not None else {"seq": frame.seq}
    value = facts.pop("payload", None) if exchange is not None else readable_payload(frame, exchange)
    payload, form = _payload_text(value)
    if withheld(frame):
        payload = "payload not recorded: metadata only"
    record: dict[str, object] = {"row": row, "facts": facts, "form": form, "payload": payload[:MAX_PAYLOAD]}
    if len(payload) > MAX_PAYLOAD:
        record["cut"] = f"the first {text.format_size(MAX_PAYLOAD)} of {text.format_size(len(payload))}"
    return {**record, **({"notes": list(notes)} if notes else {})}


def _payload_text(value: object) -> tuple[str, str]:
    """The text, and whether it is JSON: that is indented by the page, whose numbers would lose digits, as text."""
    if value is None or isinstance(value, str):
        return value or "", "text"
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=0).decode(), "json"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, ensure_ascii=False), "json"
    except RecursionError:
        return "nested too deeply to be shown", "text"


def exchange_record(row: ExchangeRow, notes: Sequence[str], first: int) -> dict[str, object]:
    """An exchange with its header fields; `first` is the number of its first row, -1 where it has none."""
    exchange = row.exchange
    told = {name: value for name, value in exchange_object(exchange).items() if value not in (None, "", [])}
    return {
        "place": format_place(NotePlace(row.session, exchange.id)),
        "title": text.exchange_title(exchange),
        "manner": text.binding_and_dialect(exchange),
        "outcome": text.outcome_label(exchange),
        "took": text.latency_label(exchange),
        "facts": told,
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
    """A finding; `row` is the row that it is about, -1 where no row is."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.name.lower(),
        "summary": finding.summary,
        "place": format_place(NotePlace(session, finding.exchange, finding.seq)) if finding.exchange else f"{session}",
        "connection": 0 if finding.exchange else finding.connection,
        "at": text.format_utc(finding.at),
        "evidence": evidence_words(finding),
        "confidence": finding.confidence,
        "task": finding.task_id,
        "row": row,
    }


def rule_record(name: str) -> dict[str, object]:
    """What a rule says; of what the decoders find themselves nothing but its name."""
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
    """A party: its name, and what it is."""
    return [lane.name, str(lane.role)]


def task_record(recording: Recording, row: TaskRow, start: int) -> dict[str, object]:
    """A task's course; times in ms since `start` (ns), negative where it is older than the first frame shown."""
    task = row.task
    return {
        "id": task.task_id,
        "agent": task.agent,
        "context": task.context_id,
        "states": [[(at - start) / _MS, state_name(state), format_elapsed(at - start)] for at, state in task.states],
        "end": (max(task.last, *(at for at, _ in task.states), task.first) - start) / _MS,
        "generations": generations.generations_line(task, lambda number: operation_of(recording, row.session, number)),
        "missed": [
            [(gap.at - start) / _MS, missed_generation_words(recording, row.session, gap)] for gap in task.missed
        ],
        "artifacts": [_artifact_words(each) for each in task.artifacts],
        "messages": task.messages,
    }


def _artifact_words(each: ArtifactState) -> str:
    end = "complete" if each.complete else "not complete"
    words = f"{text.format_count(max(each.chunks, 1), 'chunk')}, {text.format_size(each.size)}, {end}"
    return f"{each.name or each.artifact_id} ({words})"


def state_names(task: Task) -> str:
    """`submitted > working > completed`."""
    return " > ".join(state_name(state) for _, state in task.states)
