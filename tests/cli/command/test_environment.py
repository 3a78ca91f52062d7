"""Environment variables of the command: exactly those of the proxy change."""

from __future__ import annotations

import pytest

from a2a_proxy.cli.command.environment import JavaOptions, command_environment, find_proxy
from a2a_proxy.relay.route import Upstream


def test_all_traffic_goes_to_the_proxy() -> None:
    """Variables that were set are replaced; exceptions are emptied; everything else stays."""
    before = {
        "PATH": "/bin",
        "HTTP_PROXY": "http://old:1",
        "NO_PROXY": "localhost",
        "no_grpc_proxy": "*",
        "odd\udcff": "\udcfe",
    }
    after = command_environment(before, "127.0.0.1:9900")
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "grpc_proxy")
    assert after == {
        "PATH": "/bin",
        "odd\udcff": "\udcfe",
        **dict.fromkeys(names, "http://127.0.0.1:9900"),
        **dict.fromkeys(("NO_PROXY", "no_proxy", "no_grpc_proxy"), ""),
        "NODE_USE_ENV_PROXY": "1",
    }
    assert before["HTTP_PROXY"] == "http://old:1"


@pytest.mark.parametrize(
    ("environment", "text", "address", "credentials"),
    [
        ({"http_proxy": "http://proxy:3128"}, "http_proxy=http://proxy:3128", "proxy:3128", ""),
        ({"HTTP_PROXY": "http://b:2", "https_proxy": "a:1"}, "https_proxy=a:1", "a:1", ""),
        (
            {"ALL_PROXY": "http://me:sec%40ret@proxy:1080/"},
            "ALL_PROXY=http://proxy:1080/",
            "proxy:1080",
            "me:sec@ret",
        ),
    ],
)
def test_a_proxy_of_the_environment_becomes_the_upstream_proxy(
    environment: dict[str, str], text: str, address: str, credentials: str
) -> None:
    """Credentials are used, and not shown."""
    found = find_proxy(environment)
    assert found is not None
    assert (found.text, found.problems) == (text, ())
    assert found.proxy is not None
    assert (found.proxy.address.address, found.proxy.credentials) == (address, credentials)


@pytest.mark.parametrize(
    "environment", [{}, {"HTTP_PROXY": "", "NO_PROXY": "x"}, {"grpc_proxy": "http://b:2"}]
)
def test_an_environment_without_a_proxy(environment: dict[str, str]) -> None:
    assert find_proxy(environment) is None


@pytest.mark.parametrize(
    "url", ["socks5://me:secret@proxy:1080", "http://me:secret@proxy:1/path", "me:secret@:x"]
)
def test_a_proxy_that_cannot_be_used_is_named_without_credentials(url: str) -> None:
    found = find_proxy({"HTTPS_PROXY": url})
    assert found is not None
    assert found.proxy is None
    assert found.problems
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("words", "direct", "proxied"),
    [
        (
            "example.com",
            ["example.com:80", "a.example.com:443"],
            ["example.org:80", "notexample.com:80"],
        ),
        (".example.com, other", ["example.com:80", "a.example.com:80", "other:1"], ["x:1"]),
        ("*.example.com", ["a.example.com:80"], ["x:1"]),
        ("a:8080", ["a:8080"], ["a:80"]),
        ("10.0.0.5", ["10.0.0.5:80"], ["10.0.0.6:80"]),
        ("*", ["x:1", "10.0.0.5:80"], []),
        ("", ["localhost:80", "127.0.0.1:80"], ["x:1"]),
        ("10.1.2.3/8", ["10.1.2.3:80", "10.255.0.1:80"], ["11.0.0.1:80", "agent.example:80"]),
        (
            "fd00::/8,192.168.7.0/24",
            ["[fd00::1]:80", "192.168.7.9:80"],
            ["[fe00::1]:80", "192.168.8.9:80"],
        ),
    ],
)
def test_exceptions_are_kept(words: str, direct: list[str], proxied: list[str]) -> None:
    """Besides this machine, which is always one."""
    found = find_proxy({"HTTPS_PROXY": "http://proxy:1", "no_proxy": words})
    assert found is not None
    assert found.proxy is not None
    assert not found.problems
    assert [text for text in direct if found.proxy.leads_to(Upstream.parse(text))] == []
    assert [text for text in proxied if not found.proxy.leads_to(Upstream.parse(text))] == []


def test_unknown_exceptions_are_named() -> None:
    found = find_proxy({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "10.0.0.0/40,a"})
    assert found is not None
    assert found.problems == ("the exception 10.0.0.0/40 of NO_PROXY is not known",)


_JAVA = (
    "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 "
    "-Dhttp.nonProxyHosts="
)
_TRUST = (
    '-Djavax.net.ssl.trustStore="/a b/trust.p12" -Djavax.net.ssl.trustStoreType=PKCS12 '
    "-Djavax.net.ssl.trustStorePassword=pass"
)


@pytest.mark.parametrize(
    ("before", "java", "after"),
    [
        ({}, JavaOptions(), _JAVA),
        ({"JAVA_TOOL_OPTIONS": "-Xmx1g"}, JavaOptions(), f"-Xmx1g {_JAVA}"),
        ({}, JavaOptions("/a b/trust.p12", "pass"), f"{_JAVA} {_TRUST}"),
    ],
)
def test_java_options_are_added_to_those_of_the_environment(
    before: dict[str, str], java: JavaOptions, after: str
) -> None:
    assert command_environment(before, "127.0.0.1:9", java)["JAVA_TOOL_OPTIONS"] == after
    assert "JAVA_TOOL_OPTIONS" not in command_environment({}, "127.0.0.1:9")
