"""The receiver behind a webhook's URL, and the targets that are joined to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.relay.webhooks.registration import parse_receiver


@pytest.mark.parametrize(
    ("url", "origin", "authority", "target"),
    [
        ("http://client.example/hook", "client.example:80", "client.example", "/hook"),
        ("https://client.example", "https://client.example:443", "client.example", "/"),
        (
            "http://Client.example:8080/a%2Fb?x=1#part",
            "client.example:8080",
            "client.example:8080",
            "/a%2Fb?x=1",
        ),
        ("http://client.example:80/", "client.example:80", "client.example", "/"),
        ("http://[::1]:9/ü", "[::1]:9", "[::1]:9", "/%C3%BC"),
        (
            "https://münchen.example/",
            "https://xn--mnchen-3ya.example:443",
            "xn--mnchen-3ya.example",
            "/",
        ),
    ],
)
def test_receivers(url: str, origin: str, authority: str, target: str) -> None:
    """The port of the scheme is left out of `Host`, as HTTP clients do."""
    receiver = parse_receiver(url)
    assert receiver is not None
    assert (receiver.origin.text, receiver.authority, receiver.join_target("", "")) == (
        origin,
        authority,
        target,
    )


@pytest.mark.parametrize(
    "url",
    ["", "hook", "ftp://h/", "http://", "http://h:0/", "http://h:x/", "http://h/\n", "http://h/ a"],
)
def test_urls_to_which_nothing_can_be_sent(url: str) -> None:
    assert parse_receiver(url) is None


def test_user_information_is_kept_for_the_agent() -> None:
    receiver = parse_receiver("http://user:word@client.example/hook")
    assert receiver is not None
    assert (receiver.credentials, receiver.authority) == ("user:word", "client.example")


@pytest.mark.parametrize(
    ("path", "query", "target"),
    [
        ("", "", "/hook/?x=1"),
        ("", "validate=a%20b", "/hook/?x=1&validate=a%20b"),
        ("/", "", "/hook/?x=1"),
        ("/challenge/7", "", "/hook/challenge/7?x=1"),
        ("/..", "", None),
        ("/a/../../b", "", None),
        ("/%2e%2E/b", "", None),
        ("/a%2F..%2Fb", "", None),
        ("/a\\..\\b", "", None),
        ("/.", "", None),
        ("/..;/b", "", None),
        ("/a/..;b=c;d", "", None),
        ("/..%3bb/c", "", None),
        ("/%252e%252e/b", "", None),
        ("/a%25252f..%25252Fb", "", None),
        ("/..%00/%2e%20", "", None),
        ("/%2525252541", "", None),
        ("/a;v=1/..;b..c;/..b", "", None),
        ("/%c0%ae%C0%AE/b", "", None),
        ("/%e0%80%ae./b", "", None),
        ("/..%f0%80%80%afb", "", None),
        ("/%u002e%U002E/b", "", None),
        ("/%25u002e./b", "", None),
        ("/%E0%B8%81%c3%a0/%ua", "", "/hook/%E0%B8%81%c3%a0/%ua?x=1"),
        ("/a;v=../100%/;x/b%2520c", "", "/hook/a;v=../100%/;x/b%2520c?x=1"),
        ("/..a/b..", "", "/hook/..a/b..?x=1"),
    ],
)
def test_joined_targets(path: str, query: str, target: str | None) -> None:
    """A path leads out of the URL with `..` only, in whichever spelling, and is refused, as invalid
    encodings are."""
    receiver = parse_receiver("http://client.example/hook/?x=1")
    assert receiver is not None
    assert receiver.join_target(path, query) == target


@given(st.text())
def test_any_text_is_a_receiver_or_none(url: str) -> None:
    receiver = parse_receiver(url)
    assert receiver is None or (receiver.join_target("", "") or "").isascii()
    receiver = parse_receiver(f"http://h/{url}")
    assert receiver is None or (receiver.join_target("", "") or "").isascii()
