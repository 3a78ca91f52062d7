"""The extensions that a process knows."""

from __future__ import annotations

import pytest

from a2a_proxy.protocol.extensions import Extension
from a2a_proxy.protocol.extensions.registry import BUILT_IN, Registry, name_uris
from a2a_proxy.protocol.extensions.uses import find_extensions
from support_extensions import A2UI_URI, PASSPORT_URI, SPOKEN


def courier(**members: tuple[str, ...]) -> Extension:
    return Extension(
        name="courier",
        uris=("urn:courier:",),
        summarise=lambda payload: f"{payload.value}",
        **members,
    )


def test_plug_ins_are_asked_for_once_and_only_when_needed() -> None:
    calls = []

    def source() -> list[Extension]:
        calls.append(1)
        return [courier()]

    registry = Registry()
    registry.use_source(source)
    assert not calls
    assert [each.name for each in registry.extensions] == [
        "courier",
        *(each.name for each in BUILT_IN),
    ]
    assert registry.find_uri("urn:courier:v1") is registry.extensions[0]
    assert registry.find_uri("urn:other") is None
    assert len(calls) == 1


def test_a_plug_in_takes_the_place_of_a_built_in_extension() -> None:
    registry = Registry()
    registry.use_source(lambda: [courier(media_types=("application/json+a2ui",))])
    (use,) = find_extensions(SPOKEN["a2ui 0.8"][0], "", registry)
    assert use.name == "courier"


@pytest.mark.parametrize(
    ("uris", "named"),
    [
        (A2UI_URI, f"{A2UI_URI} (A2UI)"),
        (f"{PASSPORT_URI},urn:x", f"{PASSPORT_URI} (secure passport), urn:x"),
        ("", ""),
    ],
)
def test_uris_are_shown_with_their_names(uris: str, named: str) -> None:
    assert name_uris(uris) == named
