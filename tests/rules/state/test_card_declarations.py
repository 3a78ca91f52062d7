"""Declarations of agent cards, in one form for all dialects; the reach of hosts."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.rules.examples.objects import card
from a2a_proxy.rules.facts.hosts import HostReach, host_reach, plain_text_reach
from a2a_proxy.rules.state.card_declarations import Scheme, read_declarations
from a2a_proxy.rules.state.session_state import SessionState
from support_wire import reload

OLD: dict[str, Any] = {
    "name": "Old",
    "protocolVersion": "0.3.0",
    "url": "http://localhost:8000/",
    "additionalInterfaces": [{"url": "localhost:8001", "transport": "GRPC"}],
    "supportsAuthenticatedExtendedCard": True,
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "security": [{"key": []}],
    "skills": [{"id": "see", "inputModes": ["Image/PNG"]}],
}
NEW = card(
    securitySchemes={"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
    securityRequirements=[{"schemes": {"key": {"list": []}}}],
)


def test_both_card_dialects_have_one_form() -> None:
    """Schemes, requirements, the extended card."""
    old, new = read_declarations([OLD], 1, None), read_declarations([NEW], 1, None)
    assert old.schemes == new.schemes == {"key": Scheme("apiKey", "X-Key", "header")}
    assert old.required == new.required == (("key",),)
    assert old.extended
    assert new.extended
    assert old.input_modes == ("image/png",)
    assert not old.streaming
    assert new.streaming


def test_interfaces_have_their_dialect() -> None:
    """By binding and dialect; an unknown dialect may be any."""
    old = read_declarations([OLD], 1, None)
    assert [each.url for each in old.matching_interfaces(Binding.JSONRPC, Dialect.V0_3)] == [
        "http://localhost:8000/"
    ]
    assert [each.url for each in old.matching_interfaces(Binding.GRPC, Dialect.UNKNOWN)] == [
        "localhost:8001"
    ]
    assert old.matching_interfaces(Binding.REST, Dialect.V0_3) == []
    assert old.matching_interfaces(Binding.GRPC, Dialect.V1_0) == []
    assert (
        len(
            read_declarations([OLD | NEW], 1, None).matching_interfaces(
                Binding.JSONRPC, Dialect.V0_3
            )
        )
        == 1
    )


def test_a_repeated_card_changes_nothing() -> None:
    """It counts from when it was first seen."""
    first = read_declarations([NEW], 1, None)
    assert read_declarations([dict(NEW)], 2, first) is first
    assert read_declarations([card(capabilities={})], 3, first).at == 3


@pytest.mark.parametrize(
    "value", [None, 1, "x", [1, "x", None], {"schemes": 1}, [{"schemes": [1]}]]
)
def test_members_of_wrong_types_declare_nothing(value: Any) -> None:
    """Whatever a peer sends."""
    names = [
        "supportedInterfaces",
        "capabilities",
        "securitySchemes",
        "securityRequirements",
        "skills",
        "url",
    ]
    found = read_declarations([dict.fromkeys(names, value)], 1, None)
    assert not found.streaming
    assert not found.schemes


def test_declarations_survive_a_restart() -> None:
    """As all that is known of agents."""
    world = SessionState()
    before = world.learn_card("http://localhost:8000", NEW, 5, extended=False).declarations
    again = SessionState.restore(reload(world.save()))
    assert again.agent_record("http://localhost:8000").declarations == before is not None


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("localhost", HostReach.LOOPBACK),
        ("a.localhost", HostReach.LOOPBACK),
        ("127.8.8.8", HostReach.LOOPBACK),
        ("0.0.0.0", HostReach.LOOPBACK),
        ("::ffff:127.0.0.1", HostReach.LOOPBACK),
        ("fe80::1%eth0", HostReach.LINK_LOCAL),
        ("169.254.169.254", HostReach.LINK_LOCAL),
        ("192.168.1.1", HostReach.PRIVATE),
        ("100.64.0.1", HostReach.PRIVATE),
        ("fd00::1", HostReach.PRIVATE),
        ("agent", HostReach.PRIVATE),
        ("agent.svc.cluster.local.", HostReach.PRIVATE),
        ("agent.example.com", HostReach.PUBLIC),
        ("1.1.1.1", HostReach.PUBLIC),
    ],
)
def test_hosts_are_classified_by_reach(host: str, where: HostReach) -> None:
    """By address or name."""
    assert host_reach(host) is where


@pytest.mark.parametrize(
    "url", ["https://agent.example.com", "http://[::1", "", "grpcs://agent.example.com"]
)
def test_encrypted_and_invalid_urls_are_not_plain_text(url: str) -> None:
    """Encrypted, or no URL at all."""
    assert plain_text_reach(url) is HostReach.LOOPBACK
