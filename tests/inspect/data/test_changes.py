"""Exchanges to read again while a recording grows."""

from __future__ import annotations

from pathlib import Path

import msgspec

from a2a_inspect.data.changes import ChangedExchanges
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, live, request, status, writer
from support_recording import STARTED


def test_only_changed_exchanges_are_returned(tmp_path: Path) -> None:
    """New exchanges, open ones, those with new frames or findings; each session by itself."""
    first, second = writer(tmp_path / "r.db"), writer(tmp_path / "r.db", 2)
    first.write([request(1), request(2)], changes=changes(exchange(1), live(2), exchange(3)))
    second.write([request(1)], changes=changes(exchange(1)))
    with Recording(tmp_path / "r.db") as recording:
        seen = ChangedExchanges(recording)
        assert seen.pop_changed_keys(recording) == {make_key(1, 2)}
        first.write([status(1, 1, "late")], changes=changes(exchange(2)))
        assert seen.pop_changed_keys(recording) == {make_key(1, 1), make_key(1, 2)}
        assert seen.pop_changed_keys(recording) == set()
        second.write(
            [], [Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, 1)], changes()
        )
        first.write([], changes=changes(live(4), exchange(5)))
        assert seen.pop_changed_keys(recording) == {make_key(2, 1), make_key(1, 4), make_key(1, 5)}
        assert seen.pop_changed_keys(recording) == {make_key(1, 4)}
        first.write([], changes=changes(msgspec.structs.replace(live(4), closed=STARTED + 1)))
        assert seen.pop_changed_keys(recording) == {make_key(1, 4)}
        assert seen.pop_changed_keys(recording) == set()
        third = writer(tmp_path / "r.db", 3)
        third.write([], changes=changes(exchange(1)))
        assert seen.pop_changed_keys(recording) == {make_key(3, 1)}
    for each in (first, second, third):
        each.close()
