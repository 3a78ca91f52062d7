"""A session as lines: time, addresses, completeness of the capture, and the lines about its
connections."""

import time
from collections.abc import Iterator
from contextlib import suppress

from a2a_inspect.data.finding_words import finding_words
from a2a_inspect.data.notes import note_counts
from a2a_inspect.data.observed import is_being_recorded
from a2a_proxy.capture import file_layout
from a2a_proxy.capture.backlog import MIN_LAG, recording_lag
from a2a_proxy.model.values import Connection
from a2a_proxy.present import text
from a2a_proxy.protocol.finding_totals import is_total
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, SessionRow, make_key

_UNREAD = {"tls": "not read: encrypted", "opaque": "not HTTP"}
"""Reason why a connection of this kind has no exchanges."""


def session_line(session: SessionRow) -> str:
    """Return `session 1  2026-01-31 09:41:07  127.0.0.1:9000 -> agent:8000  capture complete`,
    and its faults."""
    facts = session.facts
    ways = ", ".join(text.session_routes(facts))
    faults = f"  faults on purpose: {make_visible('; '.join(facts.faults))}" if facts.faults else ""
    return (
        f"session {session.id}  {text.format_date_time(facts.started)}  {make_visible(ways)}  "
        f"{_completeness_words(session)}{faults}"
    )


def member_lines(several: MultiReader) -> Iterator[str]:
    """Yield a line for each session, by time; with several files, each line begins with the file's
    name in the list."""
    many = len(several.members) > 1
    width = max(len(member.name) for member in several.members)
    for member, session in several.read_sessions():
        line = "  ".join(
            filter(None, (session_line(session), note_counts(member.recording, session.id)))
        )
        yield f"{make_visible(member.name):{width}}  {line}" if many else line


def _completeness_words(session: SessionRow) -> str:
    if not session.complete:
        return unended_words(session)
    words = f"INCOMPLETE: {session.missing_text}" if session.missing_text else "capture complete"
    return make_visible("; ".join(filter(None, (words, session.choice_text))))


def unended_words(session: SessionRow) -> str:
    """Return the state of a session without an end, which depends on whether its journal still
    exists."""
    if is_being_recorded(session):
        return f"being recorded{lag_words(session)}"
    with suppress(OSError):
        if session.facts.uuid in {each.session.uuid for each in file_layout.find_leftovers()}:
            return "not recorded to the end; finish with: a2a-inspect recover"
    return "ended abruptly"


def lag_words(session: SessionRow) -> str:
    """Return how far the recording of a running session is behind, as in `, 4 min behind`; empty if
    it keeps up."""
    lag = recording_lag(session.facts.uuid, session.position, time.time_ns())
    return f", {text.format_lag(lag)} behind" if lag >= MIN_LAG else ""


def connection_findings(recording: Recording, session: SessionRow) -> Iterator[FindingRow]:
    """Yield findings about connections rather than exchanges."""
    return recording.read_findings(exchange=make_key(session.id, 0))


def unread_connections(recording: Recording, session: SessionRow) -> Iterator[Connection]:
    """Yield connections that could not be read."""
    rows = recording.read_connections(session.id)
    return (row.connection for row in rows if row.connection.kind in _UNREAD)


def connection_lines(recording: Recording, session: SessionRow) -> Iterator[str]:
    """Yield a line per connection that could not be read and per finding about a connection."""
    for connection in unread_connections(recording, session):
        data = text.format_size(connection.bytes_to_agent + connection.bytes_to_client)
        way = f"-> {make_visible(connection.upstream)}"
        yield (
            f"connection {connection.id}  {connection.kind}  {way}  {data}, "
            f"{_UNREAD[connection.kind]}"
        )
    for row in connection_findings(recording, session):
        yield "  ".join(filter(None, (text.finding_place(row.finding), finding_words(row.finding))))


def connection_counts(recording: Recording, session: SessionRow) -> str:
    """Return the counts of these lines: `1 connection not read, 2 findings of connections`; empty
    without lines."""
    unread = sum(1 for _ in unread_connections(recording, session))
    found = sum(not is_total(row.finding) for row in connection_findings(recording, session))
    counts = [f"{text.format_count(unread, 'connection')} not read"] if unread else []
    return ", ".join(
        [*counts, f"{text.format_count(found, 'finding')} of connections"] if found else counts
    )
