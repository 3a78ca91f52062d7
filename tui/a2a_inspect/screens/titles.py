"""What the panes' titles and the notice of an empty screen say."""

from __future__ import annotations

from a2a_inspect.data.source import ExchangeStream, RecordingSnapshot, RecordingSource
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible


def rows_above(earlier: RecordingSnapshot, now: RecordingSnapshot, cursor: int) -> int:
    """Rows that were added before the row under the cursor: those of sessions before its own."""
    known = {session.id: length for session, length in zip(earlier.sessions, earlier.lengths, strict=True)}
    added = passed = 0
    for session, length in zip(now.sessions, now.lengths, strict=True):
        old = known.get(session.id, 0)
        if cursor < passed + old:
            break
        passed += old
        added += length - old
    return added if cursor < earlier.exchanges else 0


def exchange_title(stream: ExchangeStream) -> str:
    """An exchange in a line: number, operation, how it stands."""
    exchange = stream.row.exchange
    words = [
        f"#{exchange.id} {text.exchange_title(exchange)}",
        text.binding_and_dialect(exchange),
        text.outcome_label(exchange),
    ]
    return make_visible("  ".join(word for word in words if word))


def list_remark(rows: LazyList, late: int) -> str:
    """How many, and whether the end is followed."""
    new = rows.unseen_rows + late
    if not rows.total and not new:
        return ""
    if new > 0:
        return f"+{new} new  {rows.total}"
    return f"following  {rows.total}" if rows.follow else str(rows.total)


def empty_notice(source: RecordingSource, now: RecordingSnapshot) -> str:
    """What to say, and what to do, where there is nothing to show."""
    if source.files:
        return visible_lines("No exchanges yet in any of\n\n" + "\n".join(source.files))
    if now.sessions:
        facts = now.sessions[-1].facts
        ways = "\n".join(f"{a} -> {b}" for a, b in zip(facts.listens, facts.upstreams, strict=False))
        return visible_lines(f"No exchanges yet\n\nPoint a client at the proxy:\n{ways}")
    what = "is empty" if source.path.exists() else "does not exist yet"
    return visible_lines(
        f"Waiting for a recording\n\n{source.path} {what}\n\n"
        f"a2a-proxy --listen :9000 --upstream HOST:PORT --record {source.path}"
    )


def visible_lines(lines: str) -> str:
    """Several lines, each harmless."""
    return "\n".join(map(make_visible, lines.split("\n")))
