"""`a2a-inspect why`: print why calls and tasks did not end well, and the findings that explain a
call without such an end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_inspect.data.ending_words import ending_facts
from a2a_inspect.data.finding_words import finding_facts
from a2a_proxy.model.values import Exchange, Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.finding_totals import ENDING_RULES, follows_ending
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import (
    ExchangeRow,
    FindingRow,
    SessionRow,
    label_place,
    make_key,
)
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.ending import HIGH, Ending
from a2a_proxy.rules.endings.evaluate import FollowingFindings
from a2a_proxy.rules.families.end.connection import explain_connection

_INDENT = " " * 10
_MAX_PLACES = 8
_MAX_RULES = 8
_MAX_JUDGED_FRAMES = 20_000
"""Frames of a session that are judged again, which takes 1 to 3 s."""
_OPEN = ("not-recorded", "question-open")
"""Causes of calls and tasks whose end the recording does not have."""
_DURATION = re.compile(
    r"(?<=after )(?:less than 1 ms|\d+ min \d+ s|[\d.]+ m?s)$"
    r"|(?<=agent for )(?:less than 1 ms|\d+ min \d+ s|[\d.]+ m?s)(?= since )"
)
"""How long a call took or was silent, where only that differs between endings."""
_Found = tuple[ExchangeRow, Ending]
_Lost = tuple[SessionRow, Ending]
_Other = tuple[ExchangeRow, Finding]


def explain_endings(recording: Recording, selection: ShowSelection, *, as_json: bool) -> None:
    """Print every call that did not end well, the most important ones first; with places the whole
    account of each.

    Raises:
        UserError: a word names no place in the recording.
    """
    selection.check_words(recording)
    found: list[_Found] = []
    fine: list[ExchangeRow] = []
    lost: list[_Lost] = []
    others: list[_Other] = []
    sessions, endings = recording.read_sessions(), EndingReader(recording)
    for session in sessions:
        rows = {row.exchange.id: row for row in selection.select_rows(recording, session.id)[0]}
        here = {each.exchange: each for each in endings.explain_all(rows.values()).values()}
        found += [(rows[number], ending) for number, ending in here.items()]
        fine += [row for number, row in rows.items() if number not in here]
        others += _unexplained_findings(
            recording, session, rows, list(here.values()), is_part=bool(selection.words)
        )
        if selection.is_session_selected(session.id):
            lost += _connection_endings(recording, session)
    if selection.where and not found and not fine:
        print_no_match(selection.where)
        return
    count = len(found) + len(fine)
    several = len(sessions) > 1
    failed = {(row.session, each.task_id) for row, each in found if each.severity is not None}
    found = [
        (row, _with_command(recording, row, ending, several=several))
        for row, ending in found
        if selection.words
        or ending.is_worth_reading
        or (ending.cause in _OPEN and (row.session, ending.task_id or None) not in failed)
    ]
    found.sort(key=lambda each: -(each[1].severity or 0))
    others = _select_findings(others, is_explained=bool(found or lost))
    if as_json:
        for row, ending in found:
            print_json(_call_object(row, ending))
        for session, ending in lost:
            print_json(_connection_object(session, ending))
        for row, finding in others:
            print_json({**_call_object(row, None), "finding": finding_facts(finding)})
        return
    if selection.words:
        lines = _account_lines(recording, found, fine, several=several)
    else:
        lines = _short_lines(recording, found, lost, count, several=several)
    notes = _finding_lines(recording, others, several=several)
    for line in (*lines, *notes):
        print_line(line)


def _unexplained_findings(
    recording: Recording,
    session: SessionRow,
    rows: dict[int, ExchangeRow],
    endings: list[Ending],
    *,
    is_part: bool,
) -> Iterator[_Other]:
    """Yield the findings about calls that no ending explains, as `check` counts them. Of a part of
    the session, or of a long one, yield those that are stored: to judge a few calls again, all
    calls must be. `rows` are the calls by number."""
    if is_part:
        stored = (
            each for row in rows.values() for each in recording.read_findings(exchange=row.key)
        )
        found = list(_without_endings(stored))
    elif recording.count_rows(session.id).frames > _MAX_JUDGED_FRAMES:
        found = list(_without_endings(recording.read_findings(session.id)))
    else:
        found = list(recheck_session(recording, session))
    found = [each for each in found if each.exchange in rows]
    following = FollowingFindings(enumerate(found))
    for each in endings:
        following.mark(each)
    for index, finding in enumerate(found):
        if index not in following.marked:
            yield rows[finding.exchange], finding


def _without_endings(found: Iterable[FindingRow]) -> Iterator[Finding]:
    """Yield stored findings without those of endings and those that follow from one."""
    for stored in found:
        finding = stored.finding
        if not (finding.rule.startswith(ENDING_RULES) or follows_ending(finding)):
            yield finding


def _select_findings(others: list[_Other], *, is_explained: bool) -> list[_Other]:
    """Return the errors and warnings; where there are none and no ending, what else is known of
    calls, except of cards."""
    found = [each for each in others if each[1].severity >= Severity.WARNING]
    if found or is_explained:
        return found
    return [each for each in others if each[0].exchange.operation != "GetAgentCard"]


def _connection_endings(recording: Recording, session: SessionRow) -> list[_Lost]:
    """Return why connections without a call failed, as for TLS that was not established."""
    rows = recording.read_exchanges(session.id, headers=False)
    called = {row.exchange.connection for row in rows}
    return [
        (session, ending)
        for row in recording.read_findings(session.id)
        if not row.finding.exchange
        and row.finding.connection not in called
        and (ending := explain_connection(row.finding)) is not None
    ]


def _with_command(
    recording: Recording, row: ExchangeRow, ending: Ending, *, several: bool
) -> Ending:
    """Return the ending with the command that shows the frame it suspects."""
    if ending.suspect is None:
        return ending
    number, seq = ending.suspect
    place = label_place(row.session, number, seq, with_session=several).lstrip("#")
    command = shell_line("a2a-inspect", "show", recording.path, place, "--raw")
    return msgspec.structs.replace(ending, command=command)


def _call_object(row: ExchangeRow, ending: Ending | None) -> dict[str, object]:
    exchange = row.exchange
    return {
        "session": row.session,
        "exchange": exchange.id,
        "operation": exchange.operation,
        "task_id": exchange.task_id,
        "agent": exchange.agent,
        "ending": ending.to_object() if ending is not None else None,
    }


def _connection_object(session: SessionRow, ending: Ending) -> dict[str, object]:
    return {
        "session": session.id,
        "connection": ending.connection,
        "exchange": None,
        "ending": ending.to_object(),
    }


def _place_of(row: ExchangeRow, *, several: bool) -> str:
    return label_place(row.session, row.exchange.id, with_session=several).lstrip("#")


def _short_lines(
    recording: Recording,
    found: list[_Found],
    lost: list[_Lost],
    count: int,
    *,
    several: bool,
) -> Iterator[str]:
    """Yield three lines for each ending; endings that say the same are one, also after other times.
    `count` is the number of calls."""
    groups: dict[tuple[str, str, str], list[_Found]] = {}
    for each in found:
        words = _DURATION.sub("", each[1].summary)
        groups.setdefault((each[1].cause, words, each[1].confidence), []).append(each)
    for members in groups.values():
        places = [f"#{_place_of(each[0], several=several)}" for each in members]
        titles = dict.fromkeys(text.exchange_title(each[0].exchange) for each in members)
        ending = _name_tasks([each[1] for each in members])
        if any(each[1].summary != ending.summary for each in members):
            ending = msgspec.structs.replace(ending, summary=f"{ending.summary} (the first)")
        yield from _lines_of(ending, f"{_list_places(places)} {', '.join(titles)}")
    refusals: dict[str, list[_Lost]] = {}
    for refused in lost:
        refusals.setdefault(refused[1].summary, []).append(refused)
    for alike in refusals.values():
        places = [
            f"{session.id}:{ending.connection}" if several else str(ending.connection)
            for session, ending in alike
        ]
        yield from _lines_of(alike[0][1], f"connection {_list_places(places)}")
    if not count:
        yield "no call was recorded"
        return
    if not found:
        yield f"every call ended well ({text.format_count(count, 'call')})"
        return
    still_open = sum(each.cause in _OPEN or not row.exchange.closed for row, each in found)
    summary = f"{len(found) - still_open} of {text.format_count(count, 'call')} did not end well"
    yield f"{summary}; open or waiting for an answer: {still_open}" if still_open else summary
    place = _place_of(found[0][0], several=several)
    yield f"the whole account of one: {shell_line('a2a-inspect', 'why', recording.path, place)}"


def _name_tasks(alike: list[Ending]) -> Ending:
    """Return the first ending; its next step says how many other tasks it is about."""
    first = alike[0]
    more = len({each.task_id for each in alike if each.task_id}) - 1
    if more < 1 or not first.task_id:
        return first
    task = first.task_id[:36]
    step = first.next_step.replace(f"for {task}", f"for {task} and {more} more")
    return msgspec.structs.replace(first, next_step=step)


def _finding_lines(recording: Recording, others: list[_Other], *, several: bool) -> Iterator[str]:
    """Yield three lines for each rule whose findings no ending explains: what, who must act, what
    to do."""
    groups: dict[tuple[str, Severity], list[_Other]] = {}
    for row, finding in others:
        groups.setdefault((finding.rule, finding.severity), []).append((row, finding))
    check = shell_line("a2a-inspect", "check", recording.path)
    if groups:
        yield f"what the rules found besides, in full: {check}"
    for members in sorted(groups.values(), key=lambda each: -each[0][1].severity)[:_MAX_RULES]:
        row, finding = members[0]
        place, rule = _finding_place(row, finding, several=several), all_rules().get(finding.rule)
        actor = finding.evidence.get("actor", "")
        places = [_finding_place(*each, several=several) for each in members]
        head = f"{_list_places(places)} {text.exchange_title(row.exchange)}  {finding.rule}"
        must = f"  must act: {actor}" if actor else ""
        low = f" ({finding.confidence} confidence)" if finding.confidence != HIGH else ""
        yield f"  {finding.severity.name.lower():8}{make_visible(head + must)}"
        yield f"{_INDENT}{make_visible(finding.summary)}{low}"
        advice = rule.rationale.rpartition(". ")[2] if rule is not None else ""
        show = shell_line("a2a-inspect", "show", recording.path, place.lstrip("#"))
        explain = f"a2a-inspect rules {finding.rule}" if rule is not None else ""
        yield f"{_INDENT}next: {'; '.join(filter(None, (advice.rstrip('.'), explain or show)))}"
    if len(groups) > _MAX_RULES:
        yield f"  and {text.format_count(len(groups) - _MAX_RULES, 'more rule')}: {check}"


def _finding_place(row: ExchangeRow, finding: Finding, *, several: bool) -> str:
    return label_place(row.session, row.exchange.id, finding.seq, with_session=several)


def _list_places(places: list[str]) -> str:
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return f"{', '.join(places[:_MAX_PLACES])}{more}"


def _lines_of(ending: Ending, where: str) -> Iterator[str]:
    level = ending.severity.name.lower() if ending.severity is not None else "-"
    yield (f"  {level:8}{make_visible(where)}  {ending.cause}  {_actor_words(ending)}").rstrip()
    yield f"{_INDENT}{make_visible(ending.summary)}{_confidence_words(ending)}"
    yield f"{_INDENT}next: {make_visible('; '.join(_next_words(ending)))}"


def _account_lines(
    recording: Recording, found: list[_Found], fine: list[ExchangeRow], *, several: bool
) -> Iterator[str]:
    for row, ending in found:
        yield _title(row, several=several)
        yield f"  {make_visible(ending.summary)}"
        for name, value in ending_facts(ending).items():
            yield f"    {name:12}{value}"
        for number, (exchange, seq) in enumerate(ending.evidence):
            line = _evidence_line(recording, row.session, exchange, seq)
            yield f"    {'' if number else 'rests on':12}{make_visible(line)}"
        yield f"  explain the cause: a2a-inspect rules {ending.rule}"
    for row in fine:
        outcome = text.outcome_label(row.exchange)
        yield f"{_title(row, several=several)}: {outcome}; nothing shows that it did not end well"


def _title(row: ExchangeRow, *, several: bool) -> str:
    exchange = row.exchange
    parts = (
        f"#{_place_of(row, several=several)} {text.exchange_title(exchange)}",
        text.binding_and_dialect(exchange),
        f"task {text.shorten_id(exchange.task_id)}" if exchange.task_id else "",
    )
    return make_visible("  ".join(filter(None, parts)))


def _evidence_line(recording: Recording, session: int, number: int, seq: int) -> str:
    """Return a frame, or a whole call, that an ending rests on: `#2.1 +565 us <-- task working`."""
    key = make_key(session, number)
    row = recording.read_exchange(key)
    if row is None:
        return f"#{number}"
    exchange: Exchange = row.exchange
    if seq < 0:
        states = " > ".join(exchange.states)
        return (
            f"#{number} {text.exchange_title(exchange)}  {text.outcome_label(exchange)}  {states}"
        ).rstrip()
    frames = recording.read_frames(key, after=seq - 1, limit=1)
    for each in frames:
        frame = each.frame
        what = describe_frame(
            frame,
            frame.payload,
            exchange.operation,
            exchange.dialect,
            exchange.extensions,
            exchange.binding,
        )
        return f"#{number}.{seq} {text.format_time(frame.at)} {what}"
    return f"#{number}.{seq}"


def _actor_words(ending: Ending) -> str:
    return f"must act: {ending.actor.value}" if ending.severity is not None and ending.actor else ""


def _confidence_words(ending: Ending) -> str:
    return "" if ending.confidence == "high" else f" ({ending.confidence} confidence)"


def _next_words(ending: Ending) -> list[str]:
    return [each for each in (ending.next_step, ending.command) if each]
