"""Paths of replaced values: each as short as possible, and all fit into a frame."""

from __future__ import annotations

import pytest

from a2a_proto import from_dict
from a2a_proxy.redaction.json_hiding import hide_json_values
from a2a_proxy.redaction.json_walk import redact_json
from a2a_proxy.redaction.payload_paths import compile_paths
from a2a_proxy.redaction.protobuf_walk import find_shapes
from a2a_proxy.redaction.protobuf_walk import redact_message as walk_protobuf
from a2a_proxy.redaction.replaced_places import EVERYWHERE, ReplacedPlaces

SECRETS = 3000
LONG = "k" * 100_000


def test_the_total_length_of_paths_is_bounded() -> None:
    """All paths up to the limit are listed, and one word represents the rest."""
    told = ReplacedPlaces()
    for number in range(300_000):
        told.add(f"$.parts[{number % 200_000}]")
    paths = told.list_paths()
    assert paths[:2] == ["$.parts[0]", "$.parts[1]"]
    assert paths[-1] == EVERYWHERE
    assert len(paths) == len(set(paths))
    assert 900_000 < sum(map(len, paths)) < 1_100_000


@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_hostile_json_takes_linear_time(shape: str) -> None:
    """A name of 100,000 bytes around 3,000 secrets would be 300 MB of paths; so would be
    nesting."""
    secrets = ",".join(['"secret"'] * SECRETS)
    wide = shape == "wide"
    data = (f'{{"{LONG}":[{secrets}]}}' if wide else "[" * 20_000 + secrets + "]" * 20_000).encode()
    new, paths = redact_json(data, lambda text, _name, _cut: b"X" if text == b"secret" else None)
    assert new.count(b'"X"') == SECRETS
    assert sum(map(len, paths)) < 1_100_000
    policy = compile_paths([f"$..{'k' * 128}" if wide else "$[0]"])
    assert policy is not None
    new, paths = hide_json_values(data, policy, lambda _text: b"X")
    assert new.count(b'"X"') == SECRETS
    assert sum(map(len, paths)) < 1_100_000


def test_hostile_protobuf_takes_linear_time() -> None:
    """Names in a Struct may have any length."""
    value = {"metadata": {LONG: ["secret", {"b": "secret"}]}}
    data = from_dict("1.0", "Message", value).SerializeToString()
    descriptor = find_shapes("lf.a2a.v1.Message")[0]
    new, paths = walk_protobuf(
        data, descriptor, lambda text, _name, _cut: b"X" if text == b"secret" else None
    )
    assert b"secret" not in new
    assert max(map(len, paths)) < 300


def test_a_text_whose_end_is_missing_is_replaced_whole_and_stays_open() -> None:
    policy = compile_paths(["$.key"])
    assert policy is not None
    assert (
        hide_json_values(b'{"key":"abc', policy, lambda text: b"<" + text + b">")[0]
        == b'{"key":"<abc>'
    )


def test_odd_names_are_written_as_json() -> None:
    """A name with a quote cannot be mistaken for two steps."""
    policy = compile_paths(['$["a\\"b"]'])
    assert policy is not None
    new, paths = hide_json_values(b'{"a\\"b":"x","a":{"b":"y"}}', policy, lambda _text: b"X")
    assert new == b'{"a\\"b":"X","a":{"b":"y"}}'
    assert paths == ['$["a\\"b"]']
