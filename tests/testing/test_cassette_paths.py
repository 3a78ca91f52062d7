from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.testing.cassette_paths import default_cassette, file_name, named_cassette

HERE = Path("tests/test_booking.py")


def test_default_paths_are_by_module_and_test() -> None:
    assert default_cassette(HERE, ["test_table[four-19:30]"]).parent == Path(
        "tests/cassettes/test_booking"
    )
    assert default_cassette(HERE, ["test_table"]).name == "test_table.a2a.jsonl"
    assert (
        default_cassette(HERE, ["TestTables", "test_table[4]"]).name
        == "TestTables.test_table[4].a2a.jsonl"
    )


def test_a_named_cassette_is_beside_the_test() -> None:
    assert named_cassette(HERE, "shared/hello.a2a.jsonl") == Path("tests/shared/hello.a2a.jsonl")
    assert named_cassette(HERE, "/elsewhere/hello.a2a.jsonl") == Path("/elsewhere/hello.a2a.jsonl")


@given(st.text(max_size=400), st.text(max_size=400))
def test_every_name_is_one_of_a_file_and_no_two_are_the_same(one: str, other: str) -> None:
    for name in (one, other):
        made = file_name(name)
        assert "/" not in made
        assert "\0" not in made
        assert len(f".{made}.a2a.jsonl.abcdefgh".encode()) < 255
    assert (file_name(one) == file_name(other)) == (one == other)
