"""`a2a-inspect why`: print why calls and tasks did not end well."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_proxy.model.values import Exchange
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, label_place, make_key
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.ending import Ending

_INDENT = " " * 10
_MAX_PLACES = 8
_Found = tuple[ExchangeRow, Ending]


def explain_endings(recording: Recording, selection: ShowSelection, *, as_json: bool) -> None:
    """Print every call that did not end well, the most important ones first; with places the whole
    account of each.

    Raises:
        UserError: a word names no place in the recording.
    """
    selection.check_words(recording)
    found: list[_Found] = []
    fine: list[ExchangeRow] = []
    sessions, endings = recording.read_sessions(), EndingReader(recording)
    for session in sessions:
        for row in selection.select_rows(recording, session.id)[0]:
            ending = endings.read(row)
            if ending is not None:
                found.append((row, ending))
            else:
                fine.append(row)
    if selection.where and not found and not fine:
        print_no_match(selection.where)
        return
    found = [each for each in found if selection.words or each[1].is_worth_reading]
    found.sort(key=lambda each: -(each[1].severity or 0))
    if as_json:
        for row, ending in found:
            print_json(_ending_object(row, ending))
        return
    several = len(sessions) > 1
    lines = _account_lines if selection.words else _short_lines
    for line in lines(recording, found, fine, several=several):
        print_line(line)


def _ending_object(row: ExchangeRow, ending: Ending) -> dict[str, object]:
    exchange = row.exchange
    return {
        "session": row.session,
        "exchange": exchange.id,
        "operation": exchange.operation,
        "task_id": exchange.task_id,
        "agent": exchange.agent,
        "ending": ending.to_object(),
    }


def _place_of(row: ExchangeRow, *, several: bool) -> str:
    return (
        label_place(row.session, row.exchange.id, with_session=True)
        if several
        else str(row.exchange.id)
    )


def _short_lines(
    recording: Recording, found: list[_Found], fine: list[ExchangeRow], *, several: bool
) -> Iterator[str]:
    """Yield three lines for each ending; endings that say the same are one."""
    groups: dict[tuple[str, str], list[_Found]] = {}
    for each in found:
        groups.setdefault((each[1].cause, each[1].summary), []).append(each)
    for members in groups.values():
        row, ending = members[0]
        places = [f"#{_place_of(each[0], several=several)}" for each in members]
        more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
        where = f"{', '.join(places[:_MAX_PLACES])}{more} {text.exchange_title(row.exchange)}"
        level = ending.severity.name.lower() if ending.severity is not None else "-"
        yield (f"  {level:8}{make_visible(where)}  {ending.cause}  {_actor_words(ending)}").rstrip()
        yield f"{_INDENT}{make_visible(ending.summary)}{_confidence_words(ending)}"
        yield f"{_INDENT}next: {make_visible('; '.join(_next_words(ending)))}"
    count = len(found) + len(fine)
    if not found:
        yield f"every call ended well ({text.format_count(count, 'call')})"
        return
    yield f"{len(found)} of {text.format_count(count, 'call')} did not end well"
    place = _place_of(found[0][0], several=several)
    yield f"the whole account of one: {shell_line('a2a-inspect', 'why', recording.path, place)}"


def _account_lines(
    recording: Recording, found: list[_Found], fine: list[ExchangeRow], *, several: bool
) -> Iterator[str]:
    for row, ending in found:
        yield _title(row, several=several)
        rule = all_rules()[ending.rule]
        level = ending.severity.name.lower() if ending.severity is not None else "no failure"
        yield f"  {make_visible(ending.summary)}"
        facts = {
            "cause": f"{ending.cause}: {rule.title} ({ending.rule}, {level})",
            "received": ending.received,
            "ended by": ending.ended_by,
            "agent": ending.agent_did,
            "must act": ending.actor.value if ending.severity is not None and ending.actor else "",
            "may be": ", or ".join(ending.remaining),
            "decides": ending.decides,
            "next": ending.next_step,
            "command": ending.command,
            "confidence": ending.confidence,
        }
        for name, value in facts.items():
            if value:
                yield f"    {name:12}{make_visible(value)}"
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
        )
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
