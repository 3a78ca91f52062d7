"""Known extensions, found where their specifications put them; and nothing that a peer writes stops
a screen."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.protocol.extensions import Extension, ExtensionPayload
from a2a_proxy.protocol.extensions.registry import Registry
from a2a_proxy.protocol.extensions.uses import MAX_USES, ExtensionUse, find_extensions
from support_extensions import (
    LATENCY_URI,
    PASSPORT_URI,
    SPOKEN,
    TRACE_URI,
    artifact,
    card,
    request,
    status,
)

_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "x",
    [],
    [None],
    {},
    {"a": None},
    [[]],
    "\u202e\x1b[31m",
)
_ASKED = f"{LATENCY_URI}, {TRACE_URI}"


def told(uses: list[ExtensionUse]) -> list[str]:
    return [f"{use.name} at {use.place}: {use.words}" for use in uses]


@pytest.mark.parametrize("name", SPOKEN)
def test_what_each_extension_says(name: str) -> None:
    payload, requested, uses = SPOKEN[name]
    assert told(find_extensions(payload, requested)) == uses


@pytest.mark.parametrize(
    "payload",
    [
        status({"data": {"latency": 3275}}),
        artifact({"data": {"trace_id": "t", "steps": []}}),
        request(
            {"data": {"a": 1}, "metadata": {"mimeType": "application/json"}},
            metadata={"a": "2026-11-23T10:00:00Z"},
        ),
        card("https://example.com/ext/v1", roles=["merchant"]),
        {"task": {"history": [{"metadata": {PASSPORT_URI: {"agentId": "a", "state": {}}}}]}},
    ],
    ids=[
        "latency not requested",
        "steps not requested",
        "plain data",
        "other extension",
        "history",
    ],
)
def test_common_names_alone_are_no_extension(payload: dict[str, Any]) -> None:
    assert find_extensions(payload) == []


def _mutants(value: Any) -> Iterator[Any]:
    """Yield the value with each node replaced by each odd one."""
    yield from _ODD
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in items:
        for changed in _mutants(each):
            copied = copy.copy(value)
            copied[key] = changed
            yield copied


@pytest.mark.parametrize("name", SPOKEN)
def test_malformed_content_is_described(name: str) -> None:
    """Whatever stands in place of a node, a line without control characters is found, and no
    function fails."""
    payload, _, _ = SPOKEN[name]
    mutants = list(_mutants(payload))
    assert len(mutants) > 30
    for mutant in mutants:
        for use in find_extensions(mutant, _ASKED):
            assert str(use).isprintable()
            assert "not readable" not in use.words


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "message",
                    "metadata",
                    "parts",
                    "data",
                    "ap2.x",
                    "a2uiX",
                    PASSPORT_URI,
                    "latency",
                    "steps",
                    "mediaType",
                ]
            ),
            each,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(_JSON)
def test_any_json_is_accepted(value: Any) -> None:
    for use in find_extensions(value, _ASKED):
        assert "not readable" not in use.words


def test_the_number_of_uses_is_limited() -> None:
    parts = [{"data": {"ap2.mandates.X": {}}}] * 1000
    assert len(find_extensions(request(*parts))) == MAX_USES


def test_a_plug_in_that_fails_is_shown_in_its_place() -> None:
    """Its exception is not the end of the line."""

    def fail(payload: ExtensionPayload) -> str:
        raise KeyError(payload.key)

    registry = Registry()
    registry.use_source(
        lambda: [
            Extension(name="courier", uris=("urn:courier",), members=("parcel",), summarise=fail)
        ]
    )
    uses = find_extensions(request({"data": {"parcel": 1}}), "", registry)
    assert told(uses) == ["courier at message.parts[0].data: not readable: KeyError: 'parcel'"]
