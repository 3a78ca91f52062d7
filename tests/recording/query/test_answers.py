"""SQL finds what a plain loop over decoded values finds: on all samples, for every field."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.query.fields import FIELDS
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.query.tree import Node, quote_text, to_text
from a2a_proxy.recording.read.reader import Recording
from support_naive import World
from support_query import matches, nodes, rich

MADE = Path("made")
SAMPLES = [*sorted((Path(__file__).parents[3] / "recordings").glob("*.a2a.jsonl")), MADE]


@cache
def sample(path: Path) -> tuple[Recording, World]:
    recording = open_recording_or_cassette(path if path is not MADE else _folder[0] / "made.a2a.db")
    return recording, World(recording)


_folder: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _folder[:] = [tmp_path_factory.mktemp("query")]
    rich(_folder[0] / "made.a2a.db")
    yield
    for path in SAMPLES:
        sample(path)[0].close()
    sample.cache_clear()


def agree(path: Path, node: Node) -> None:
    """Both ways give the same rows of both kinds."""
    recording, facts = sample(path)
    asked = recording.get_queryable()
    assert list(asked.select_ids(node, Rows.FRAMES)) == facts.frames_with(node), to_text(node)
    exchanges = facts.exchanges_with(node)
    assert list(asked.select_ids(node, Rows.EXCHANGES)) == exchanges, to_text(node)
    early = asked.early_exchanges(node)
    assert early == [key for key in exchanges if key in set(early)], to_text(node)


@settings(max_examples=300)
@given(st.sampled_from(SAMPLES), nodes())
def test_any_expression_finds_the_same_as_the_naive_filter(path: Path, node: Node) -> None:
    """Generated expressions."""
    agree(path, node)


@settings(max_examples=400)
@given(st.sampled_from(SAMPLES), matches())
def test_any_condition_finds_the_same_as_the_naive_filter(path: Path, node: Node) -> None:
    """Generated conditions, one at a time: no other one hides what it finds."""
    agree(path, node)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_values_of_the_samples_are_found(path: Path) -> None:
    """Values taken from the sample itself: ids whole and begun, states, codes, words of
    payloads."""
    _, facts = sample(path)
    texts = {"err", "-err", "sev:*", "trace:*", "$.result.kind:*", "req.part:text", "resp.part:*"}
    for one in facts.frames[:: max(1, len(facts.frames) // 40)]:
        frame = one.frame
        ids = (("task", frame.task_id), ("ctx", frame.context_id), ("msg", frame.message_id))
        for name, ident in ids:
            if ident:
                texts |= {
                    f"{name}:{quote_text(ident[:5])}",
                    f"{name}:{quote_text(ident[:11])}",
                    f"{name}={quote_text(ident)}",
                }
        texts |= {f"size:{frame.size}", f"gen:{frame.generation}", f"code:{frame.error_code}"}
        texts.add(f"rec:{one.session.facts.uuid[:9]}")
    for text in sorted(texts):
        agree(path, parse_expression(text))


HITS = {
    "op": "op:tasks/get", "binding": "binding:rest", "dir": "dir:to-client",
    "kind": "kind:artifact", "task": "task:4d1144cc", "ctx": "ctx:0e5a", "msg": "msg:b2eadfe1",
    "state": "state:TASK_STATE_WORKING", "part": "part:file", "mime": "mime:text/p",
    "ext": "ext:traceability", "ver": "ver:1.0", "code": "code:-32001", "status": "status:404",
    "gen": "gen:>0", "gap": "gap", "err": "err", "outcome": "outcome:ok",
    "ending": "ending:agent-error", "finding": "finding:zone",
    "sev": "sev:>=warning", "rule": "rule:GEN-001", "agent": "agent:127.0.0.1",
    "peer": "peer:127.0.0.1", "header": "req.header:authorization", "meta": "meta:tenant",
    "size": "size>100", "dur": "slow:>100ms", "ttfe": "ttfe:>1ms", "t": "t:2026-11-21",
    "rec": "rec:1", "src": "src:peer", "trace": "~~4BF92f35", "note": "note:settings",
    "bookmark": "bookmark:yes", "text": "text~TASK_STATE",
}  # fmt: skip
"""For each field a condition that holds for something."""


def test_every_field_is_tested() -> None:
    """None was forgotten."""
    assert HITS.keys() == FIELDS.keys()


@pytest.mark.parametrize("name", HITS)
def test_every_field_hits_and_misses(name: str) -> None:
    """It finds something, not everything, and its negation the rest; `*` finds what the loop
    finds."""
    found = missed = 0
    for path in SAMPLES:
        recording, facts = sample(path)
        node, other = parse_expression(HITS[name]), parse_expression(f"-({HITS[name]})")
        agree(path, node)
        for rows, every in (
            (Rows.FRAMES, facts.frames),
            (Rows.EXCHANGES, facts.exchanges.values()),
        ):
            hits, misses = (
                set(recording.get_queryable().select_ids(each, rows)) for each in (node, other)
            )
            assert (hits | misses, hits & misses) == ({each.id for each in every}, set())
            found, missed = found + len(hits), missed + len(misses)
        if name not in ("gap", "err", "bookmark"):
            agree(path, parse_expression(f"{name}:*"))
    assert found
    assert missed or name in ("agent", "peer", "t", "rec", "src")
