"""Members of a card in the form of 0.3, and their form in 1.0."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_inspect.commands.card.migration import migration_findings
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.objects import card

OLD: dict[str, Any] = {
    "supportedInterfaces": None,
    "url": "http://localhost:8000/",
    "protocolVersion": "0.3.0",
}
KEY = {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}}
NEW_KEY = {"key": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}}}
SKILL = card()["skills"][0]


def migrate(**members: Any) -> dict[str, tuple[Severity, str]]:
    """Severity and summary by path."""
    found = migration_findings(card(**members), 7)
    assert {(each.rule, each.at) for each in found} <= {("MIGRATION", 7)}
    return {each.evidence["path"]: (each.severity, each.summary) for each in found}


@pytest.mark.parametrize("members", [{}, {"securitySchemes": NEW_KEY, "securityRequirements": []}])
def test_a_1_0_card_has_nothing_to_migrate(members: dict[str, Any]) -> None:
    assert migrate(**members) == {}


@pytest.mark.parametrize(
    ("members", "path", "form"),
    [
        ({}, "url", "`supportedInterfaces[].url`"),
        ({}, "protocolVersion", "`supportedInterfaces[].protocolVersion`"),
        (
            {"preferredTransport": "JSONRPC"},
            "preferredTransport",
            "`supportedInterfaces[].protocolBinding`",
        ),
        (
            {"additionalInterfaces": []},
            "additionalInterfaces",
            "`supportedInterfaces[]` with `protocolBinding`",
        ),
        (
            {"supportsAuthenticatedExtendedCard": True},
            "supportsAuthenticatedExtendedCard",
            "extendedAgentCard",
        ),
        ({"authentication": {"schemes": ["Bearer"]}}, "authentication", "`securitySchemes` and"),
        (
            {"security": [{"key": []}]},
            "security",
            '`securityRequirements`, each entry as `{"schemes"',
        ),
        (
            {"securitySchemes": KEY},
            "securitySchemes.key.type",
            "apiKeySecurityScheme` with `location` for `in`",
        ),
        (
            {"skills": [SKILL, SKILL | {"security": [{"key": []}]}]},
            "skills[1].security",
            "skills[].security",
        ),
    ],
)
def test_a_0_3_card(members: dict[str, Any], path: str, form: str) -> None:
    """Each old member is an info with its 1.0 form."""
    found = migrate(**OLD, **members)
    severity, summary = found[path]
    assert severity is Severity.INFO
    assert summary.startswith(
        f"`{path}` is the {'0.1' if path == 'authentication' else '0.3'} form; in 1.0: `"
    )
    assert form in summary
    assert set(found) == {"url", "protocolVersion", path}


@pytest.mark.parametrize(
    ("kind", "wrapper"),
    [
        ("http", "httpAuthSecurityScheme"),
        ("oauth2", "oauth2SecurityScheme"),
        ("openIdConnect", "openIdConnectSecurityScheme"),
        ("mutualTLS", "mtlsSecurityScheme"),
    ],
)
def test_types_of_schemes(kind: str, wrapper: str) -> None:
    """One finding for each type, with the number of schemes."""
    _, summary = migrate(**OLD, securitySchemes={"a": {"type": kind}, "b": {"type": kind}})[
        "securitySchemes.a.type"
    ]
    assert summary == (
        f"`securitySchemes.a.type` (2 schemes) is the 0.3 form; in 1.0: "
        f"`securitySchemes.*.{wrapper}`"
    )


def test_a_member_without_a_1_0_form() -> None:
    found = migrate(**OLD, capabilities={"stateTransitionHistory": False})
    assert found["capabilities.stateTransitionHistory"] == (
        Severity.INFO,
        "`capabilities.stateTransitionHistory` is a member of 0.3 that 1.0 does not have",
    )


@pytest.mark.parametrize(
    ("members", "version"),
    [
        ({}, "0.2"),
        ({"authentication": {}}, "0.1"),
        ({"protocolVersion": "0.2.6"}, "0.2"),
        ({"protocolVersion": "x"}, "0.3"),
    ],
)
def test_the_version_of_an_older_card(members: dict[str, Any], version: str) -> None:
    _, summary = migrate(**{**OLD, "protocolVersion": None, **members})["url"]
    assert summary.startswith(f"`url` is the {version} form; in 1.0: ")


def test_a_card_with_both_forms() -> None:
    """A warning where 1.0 clients lack something that 0.3 clients have."""
    old = {"url": "http://localhost:8000/", "security": [{"key": []}], "securitySchemes": KEY}
    mixed = migrate(**old)
    assert mixed["url"] == (
        Severity.INFO,
        (
            "`url` is the 0.3 form, which 1.0 clients ignore; the card also has "
            "`supportedInterfaces[].url`"
        ),
    )
    severity, summary = mixed["security"]
    assert severity is Severity.WARNING
    assert "which 1.0 clients ignore; the card lacks `securityRequirements`" in summary
    assert mixed["securitySchemes.key.type"][0] is Severity.WARNING
    both = {name: KEY[name] | NEW_KEY[name] for name in KEY}
    complete = migrate(
        **old | {"securitySchemes": both}, securityRequirements=[{"schemes": {"key": {}}}]
    )
    assert {severity for severity, _ in complete.values()} == {Severity.INFO}


@pytest.mark.parametrize(
    ("old", "capabilities", "severity"),
    [
        (True, {}, Severity.WARNING),
        (False, {}, Severity.INFO),
        (True, {"extendedAgentCard": True}, Severity.INFO),
    ],
)
def test_the_extended_card_in_both_forms(
    old: bool, capabilities: dict[str, bool], severity: Severity
) -> None:
    found = migrate(supportsAuthenticatedExtendedCard=old, capabilities=capabilities)
    assert found["supportsAuthenticatedExtendedCard"][0] is severity


@pytest.mark.parametrize(
    "members",
    [
        {"securitySchemes": [1], "security": "x", "skills": "y", "capabilities": 7},
        {
            "securitySchemes": {"a": None, "b": {"type": ["apiKey"]}, "c": {"type": "odd"}},
            "skills": [None, {}],
        },
    ],
)
def test_wrong_types_are_left_to_the_schema_rules(members: dict[str, Any]) -> None:
    assert set(migrate(**OLD, **members)) <= {"url", "protocolVersion", "security"}
