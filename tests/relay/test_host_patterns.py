from __future__ import annotations

import pytest

from a2a_proxy.relay.host_patterns import HostPattern, InterceptPolicy
from a2a_proxy.relay.route import RouteError


@pytest.mark.parametrize(
    ("pattern", "host", "port", "address", "matches"),
    [
        ("agent.example", "agent.example", 443, "", True),
        ("Agent.Example", "AGENT.example.", 8443, "", True),
        ("agent.example", "a.agent.example", 443, "", False),
        ("agent.example:8443", "agent.example", 8443, "", True),
        ("agent.example:8443", "agent.example", 443, "", False),
        ("*.example.com", "a.example.com", 443, "", True),
        ("*.example.com", "a.b.example.com", 443, "", True),
        ("*.example.com", "example.com", 443, "", False),
        ("*.example.com", ".example.com", 443, "", False),
        ("*.example.com", "badexample.com", 443, "", False),
        ("*.example.com:1", "a.example.com", 1, "", True),
        ("[::1]:9", "::1", 9, "", True),
        ("*", "whatever", 1, "", True),
        ("*:443", "whatever", 444, "", False),
        ("private", "127.0.0.1", 443, "", True),
        ("private", "localhost", 443, "", True),
        ("private", "a.localhost", 443, "", True),
        ("private", "agent", 443, "10.1.2.3", True),
        ("private", "agent", 443, "fd00::1", True),
        ("private", "agent", 443, "fe80::1%eth0", True),
        ("private", "agent", 443, "::ffff:192.168.0.1", True),
        ("private", "agent", 443, "93.184.216.34", False),
        ("private", "localhost", 443, "93.184.216.34", False),
        ("private", "agent", 443, "", False),
        ("private:8443", "127.0.0.1", 443, "", False),
    ],
)
def test_patterns(pattern: str, host: str, port: int, address: str, matches: bool) -> None:
    assert HostPattern.parse(pattern).matches(host, port, address) is matches


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "http://a",
        "a:0",
        "a:70000",
        "a:b",
        "*a",
        "a.*",
        "*.",
        "a..b",
        "::1",
        "10.0.0.0/8",
        "a,b",
    ],
)
def test_texts_that_are_no_pattern(text: str) -> None:
    with pytest.raises(RouteError) as caught:
        HostPattern.parse(text)
    assert repr(text) in caught.value.message
    assert "private" in caught.value.hint


def test_exceptions_win() -> None:
    def patterns(*texts: str) -> tuple[HostPattern, ...]:
        return tuple(map(HostPattern.parse, texts))

    policy = InterceptPolicy(
        patterns("private", "*.example.com"), patterns("secret.example.com", "10.0.0.1")
    )
    assert policy.opens(["a.example.com"], 443, "93.184.216.34")
    assert policy.opens(["10.0.0.2", "secret.test"], 443, "10.0.0.2")
    assert not policy.opens(["secret.example.com"], 443, "10.0.0.2")
    assert not policy.opens(["10.0.0.1", "a.example.com"], 443, "10.0.0.1")
    assert not policy.opens(["other.test"], 443, "93.184.216.34")
    assert not InterceptPolicy().opens(["localhost"], 443, "127.0.0.1")
