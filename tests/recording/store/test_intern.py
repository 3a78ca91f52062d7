"""Row numbers of interned values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.store import intern
from a2a_proxy.recording.store.codec import unpack_ident
from a2a_proxy.recording.store.database import open_private


@given(st.lists(st.sets(st.integers(0, 60).map(lambda n: f"id {n}"), max_size=9), max_size=30))
def test_numbers_never_change(batches):
    """Whatever was forgotten in between, a value has one row, and the cache stays near its
    bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intern, "_EPOCH_SIZE", 12)
        db = open_private()
        known = intern.ident_interner(db)
        seen: dict[str, int] = {}
        for batch in batches:
            known.learn_values(batch)
            for value in batch:
                assert seen.setdefault(value, known.ids[value]) == known.ids[value]
            assert len(known.ids) <= 12 + 9 + 1
        stored = {
            unpack_ident(value): number
            for number, value in db.execute("SELECT id, value FROM ident")
        }
        assert stored == seen
        db.close()


def test_two_writers_share_rows():
    """A value that another session stored is found, not stored again."""
    db = open_private()
    one, two = intern.ident_interner(db), intern.ident_interner(db)
    one.learn_values({"a", "b", "7"})
    two.learn_values({"b", "c", "7"})
    assert two.ids["b"] == one.ids["b"]
    assert one.row_number("c") == two.ids["c"]
    assert one.row_number("7") == two.row_number("7") == -8
    assert one.row_number("") == 0
    assert db.execute("SELECT count(*) FROM ident").fetchone() == (3,)
    db.close()
