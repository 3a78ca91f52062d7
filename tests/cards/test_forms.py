"""The signed bytes of a card in each form."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.cards.forms import MAX_DEPTH, signed_forms, uncovered_members
from a2a_proxy.model.card_signature import CardForm
from a2a_proxy.rules.examples.objects import card

Json = dict[str, Any]


def form(value: Json, wanted: CardForm) -> str:
    return next(each.data.decode() for each in signed_forms(value) if each.form is wanted)


def test_the_example_of_the_specification() -> None:
    """Section 8.4.1: required members and those with presence stay, an empty list that is not
    required goes."""
    fragment = {
        "name": "Example Agent",
        "description": "",
        "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
        "skills": [],
    }
    rest = {
        "supportedInterfaces": [{}],
        "version": "1",
        "defaultInputModes": ["a"],
        "defaultOutputModes": ["b"],
    }
    assert form(fragment | rest, CardForm.SPECIFICATION) == (
        '{"capabilities":{"pushNotifications":false,"streaming":false},"defaultInputModes":["a"],'
        '"defaultOutputModes":["b"],"description":"","name":"Example Agent","skills":[],'
        '"supportedInterfaces":[{"protocolBinding":"",'
        '"protocolVersion":"","url":""}],"version":"1"}'
    )
    assert form(fragment, CardForm.SDK) == (
        '{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}'
    )


def test_required_members_of_nested_messages_are_kept() -> None:
    flow = {"clientCredentials": {"tokenUrl": "t"}}
    value = card(
        securitySchemes={"o": {"oauth2SecurityScheme": {"flows": flow}}}, provider={"url": "u"}
    )
    converted = form(value, CardForm.SPECIFICATION)
    assert (
        '"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"scopes":{},'
        in converted
    )
    assert '"provider":{"organization":"","url":"u"}' in converted


def test_numbers_and_texts() -> None:
    """RFC 8785 writes numbers as ECMAScript does; Python SDKs before 1.1.3 wrote those of
    Python."""
    params = {"a": 1, "b": 1e-06, "c": 1e21, "d": 0.5, "ü": "€", "e": True, "f": [2]}
    value = card(capabilities={"extensions": [{"uri": "u", "params": params}]})
    assert '{"a":1,"b":0.000001,"c":1e+21,"d":0.5,"e":true,"f":[2],"ü":"€"}' in form(
        value, CardForm.SDK
    )
    python = '{"a":1.0,"b":1e-06,"c":1e+21,"d":0.5,"e":true,"f":[2.0],"\\u00fc":"\\u20ac"}'
    assert python in form(value, CardForm.PYTHON_1_1_2)


def test_members_of_0_3_at_their_default_are_dropped() -> None:
    value: Json = {
        "name": "A",
        "url": "u",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "iconUrl": None,
        "unknown": 1,
        "security": [{"k": []}, {"o": ["s"]}],
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}},
        "skills": [{"id": "s", "tags": [], "extra": 1}],
    }
    assert form(value, CardForm.PYTHON_0_3) == (
        '{"name":"A","security":[{"o":["s"]}],"securitySchemes":{"k":{"in":"header","name":"X"}},'
        '"skills":[{"id":"s"}],"url":"u"}'
    )
    changed = value | {"protocolVersion": "0.3.1", "preferredTransport": "GRPC"}
    assert '"preferredTransport":"GRPC","protocolVersion":"0.3.1"' in form(
        changed, CardForm.PYTHON_0_3
    )


@pytest.mark.parametrize("bad", [{"skills": 5}, {"capabilities": [1]}, {"name": {"a": 1}}])
def test_a_card_that_is_not_of_1_0_has_no_form_of_1_0(bad: Json) -> None:
    forms = [each.form for each in signed_forms(card() | bad)]
    assert forms == [CardForm.PYTHON_0_3, CardForm.AS_SERVED]


def test_a_card_without_canonical_form() -> None:
    """A number beyond 53 bits has none as served; a card that nests too deeply has none at all."""
    forms = [each.form for each in signed_forms(card(unknown=2**60))]
    assert CardForm.AS_SERVED not in forms
    assert CardForm.SDK in forms
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert not list(signed_forms(card(unknown=deep)))


def test_members_that_are_not_covered() -> None:
    """A member is covered if its name is written in snake_case; one at its default needs no
    signature."""
    covered = {"a": 1, "bC": {"d": 1}, "list": [{"x": 1}], "short": [1]}
    served = {
        "a": 1,
        "b_c": {"d": 1, "e": 2},
        "list": [{"x": 1, "y": 1}],
        "short": [1, {}],
        "f": False,
        "g": {},
    }
    assert uncovered_members(served | {"signatures": [1]}, covered) == (
        "b_c.e",
        "list[0].y",
        "short[1]",
        "g",
    )
    assert len(uncovered_members({f"m{number}": 1 for number in range(50)}, {})) == 20
