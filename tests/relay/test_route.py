from __future__ import annotations

import pytest

from a2a_proxy.relay.route import Listen, PortRanges, RouteError, Upstream, is_loopback


@pytest.mark.parametrize(
    ("text", "host", "port", "hosts"),
    [
        (":9000", "", 9000, ("127.0.0.1", "::1")),
        (":0", "", 0, ("127.0.0.1", "::1")),
        ("0.0.0.0:9000", "0.0.0.0", 9000, ("0.0.0.0",)),
        ("[::1]:9000", "::1", 9000, ("::1",)),
        ("[::]:65535", "::", 65535, ("::",)),
        ("localhost:9000", "localhost", 9000, ("localhost",)),
    ],
)
def test_listen_addresses_are_parsed(
    text: str, host: str, port: int, hosts: tuple[str, ...]
) -> None:
    """A bare port means this machine only; a host means what it says."""
    listen = Listen.parse(text)
    assert (listen.host, listen.port, listen.hosts) == (host, port, hosts)


@pytest.mark.parametrize(
    "text",
    ["", "9000", "host", "[::1]", ":", ":x", ":65536", ":-1", "::1:9000", "[::1", "[a]:1", ":٣"],
)
def test_invalid_listen_addresses_are_refused(text: str) -> None:
    """A mistake is one error line with a hint."""
    with pytest.raises(RouteError) as caught:
        Listen.parse(text)
    for line in (caught.value.message, caught.value.hint):
        assert line
        assert "\n" not in line


@pytest.mark.parametrize(("text", "port"), [("7000", 7000), ("host", 9000), ("80000", 9000)])
def test_the_hint_for_a_bare_number_is_a_port(text: str, port: int) -> None:
    """`7000` is meant as `:7000`."""
    with pytest.raises(RouteError) as caught:
        Listen.parse(text)
    assert caught.value.hint == f"write --listen :{port}"


@pytest.mark.parametrize(
    ("text", "host", "port", "address"),
    [
        ("agent", "agent", 80, "agent:80"),
        ("agent:9001", "agent", 9001, "agent:9001"),
        ("[::1]", "::1", 80, "[::1]:80"),
        ("[::1]:9001", "::1", 9001, "[::1]:9001"),
        ("http://agent", "agent", 80, "agent:80"),
        ("HTTP://agent/", "agent", 80, "agent:80"),
        ("http://agent:9001/", "agent", 9001, "agent:9001"),
        ("http://[::1]:9001", "::1", 9001, "[::1]:9001"),
    ],
)
def test_upstreams_are_parsed(text: str, host: str, port: int, address: str) -> None:
    """Host, port and URL forms; 80 is the port where none is given."""
    upstream = Upstream.parse(text)
    assert (upstream.host, upstream.port, upstream.address) == (host, port, address)
    assert (upstream.text, upstream.tls) == (text, False)


@pytest.mark.parametrize(
    ("text", "port", "authority"),
    [
        ("https://agent", 443, "agent"),
        ("HTTPS://agent:8443/", 8443, "agent:8443"),
        ("https://[::1]", 443, "[::1]"),
        ("https://agent:80", 80, "agent:80"),
        ("http://agent", 80, "agent"),
        ("agent:443", 443, "agent:443"),
    ],
)
def test_tls_and_the_authority(text: str, port: int, authority: str) -> None:
    """`https` is TLS on port 443; `Host` has no port where the scheme says it."""
    upstream = Upstream.parse(text)
    assert (upstream.port, upstream.tls, upstream.authority) == (
        port,
        text[:5].lower() == "https",
        authority,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no host"),
        (":9001", "no host"),
        ("agent:0", "no host or its port is 0"),
        ("agent:http", "not a port"),
        ("::1", "cannot read"),
        ("http://agent/a2a", "has a path: /a2a"),
        ("http://agent?x=1", "query or fragment"),
        ("http://agent/?x=1", "has a path"),
        ("ftp://agent", "ftp://"),
        ("http://", "no host"),
        ("8000", "'8000' has no host"),
        ("agent/path", "cannot read"),
        ("a b", "cannot read"),
    ],
)
def test_invalid_upstreams_are_refused(text: str, said: str) -> None:
    """Each mistake is named; a path cannot be added by a proxy that relays bytes."""
    with pytest.raises(RouteError) as caught:
        Upstream.parse(text)
    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["http://user:hunter2@agent/", "user:hunter2@agent:80", "https://user:hunter2@agent"]
)
def test_user_information_is_refused_and_not_repeated(text: str) -> None:
    """A password in an upstream is neither used nor printed."""
    with pytest.raises(RouteError) as caught:
        Upstream.parse(text)
    assert "hunter2" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("8001", {8001}, {1, 8000, 8002}),
        ("8001,9000-9010", {8001, 9000, 9005, 9010}, {8002, 8999, 9011}),
        (" 8001 , 9000-9001 ", {8001, 9000, 9001}, {9002}),
        ("1-65535", {1, 5432, 65535}, {0, 65536}),
    ],
)
def test_port_ranges_are_parsed(text: str, inside: set[int], outside: set[int]) -> None:
    """Ports and ranges with both ends; what a user would type to add one."""
    ports = PortRanges.parse(text)
    assert {port for port in inside | outside if port in ports} == inside
    assert PortRanges.parse(ports.text_with(70)).ranges == (*ports.ranges, (70, 70))
    assert PortRanges().text_with(70) == "70"
    assert 70 not in PortRanges()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        *(
            (text, text)
            for text in (
                "",
                "all",
                "0",
                "65536",
                "9010-9000",
                "1-",
                "-1",
                "1-2-3",
                "http",
                "٣",
                "0-80",
            )
        ),
        ("8001,", ""),
        ("8001,x,9", "x"),
        ("8001;9000", "8001;9000"),
    ],
)
def test_invalid_port_ranges_are_refused(text: str, part: str) -> None:
    """The part that cannot be read is named, with an example; there is no word for every port."""
    with pytest.raises(RouteError) as caught:
        PortRanges.parse(text)
    assert caught.value.message == f"--learn-ports: {part!r} is not a port or a range of ports"
    assert "--learn-ports 8001,9000-9010" in caught.value.hint
    assert "--learn-ports 1-65535" in caught.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "localhost", "0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1", "127.0.0.1.example"]
)
def test_other_addresses_are_not_loopback(host: str) -> None:
    """Neither the unspecified address, on which everybody can connect, nor a name."""
    assert not is_loopback(host)
