"""Interfaces of stdio agents and the forms of their commands."""

from __future__ import annotations

import pytest

from a2a_proxy.protocol.stdio_command import is_command, is_stdio


@pytest.mark.parametrize(
    ("transport", "stdio"),
    [
        ("stdio", True),
        ("STDIO", True),
        ("https://a2a.example/bindings/stdio", True),
        ("urn:a2a:binding:stdio", True),
        ("https://a2a.example/bindings/stdio/", True),
        ("https://a2a.example/bindings#stdio", True),
        ("JSONRPC", False),
        ("notstdio", False),
        ("", False),
    ],
)
def test_names_of_the_transport(transport: str, stdio: bool) -> None:
    assert is_stdio(transport) is stdio


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("agent", True),
        ("stdio:///x", True),
        ("http://x", False),
        (" ", False),
        ("stdio://x/y", False),
        ("C:x", True),
    ],
)
def test_commands_are_recognised(text: str, command: bool) -> None:
    assert is_command(text) is command
