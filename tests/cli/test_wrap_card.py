"""`a2a-proxy wrap-card`: which cards it changes, and that it changes nothing else in them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support_cli import SECONDS, Ran, environment, program, run
from support_stdio import CARD, Client, agent

_CARD = """{ "name":"\\u0078", "url" : "VAR=x agent --flag", "version": 1.50,
  "preferredTransport":"stdio",\t"skills": [ ] }

"""


def wrap(folder: Path, card: str | dict[str, Any], *options: object) -> Ran:
    """Wrap a card in a file, with the commands of this project on the PATH."""
    (folder / "card.json").write_text(card if isinstance(card, str) else json.dumps(card))
    path = f"{Path(program('a2a-proxy')).parent}{os.pathsep}{os.environ['PATH']}"
    return run(
        folder / "state", "a2a-proxy", "wrap-card", *options, folder / "card.json", PATH=path
    )


def test_only_the_command_changes(tmp_path: Path) -> None:
    ran = wrap(tmp_path, _CARD)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == _CARD.replace("agent --flag", "a2a-proxy stdio -- agent --flag")


def test_only_stdio_interfaces_are_wrapped(tmp_path: Path) -> None:
    def card(first: str, second: str, third: str, fourth: str) -> dict[str, Any]:
        return {
            "url": first,
            "transport": "STDIO",
            "additionalInterfaces": [
                {"url": second, "transport": "stdio"},
                {"url": "https://host/", "transport": "JSONRPC"},
            ],
            "supportedInterfaces": [
                {"url": third, "protocolBinding": "https://a2a.example/bindings/stdio"},
                {"url": "grpc://host", "protocolBinding": "GRPC"},
                {"url": fourth, "protocolBinding": "stdio"},
            ],
            "provider": {"url": "agent", "transport": "stdio"},
        }

    ran = wrap(tmp_path, card("one", "two", "three", "https://host/"))
    before = "a2a-proxy stdio --"
    assert json.loads(ran.out) == card(
        f"{before} one", f"{before} two", f"{before} three", "https://host/"
    )
    assert ran.code == 0


def test_options_are_taken_over(tmp_path: Path) -> None:
    options = [
        "--record",
        tmp_path / "a b.db",
        "--journal-max",
        "1G",
        "--redact",
        "none",
        "--fail-on",
        "error",
    ]
    words = shlex.split(json.loads(wrap(tmp_path, _CARD, *options).out)["url"])
    assert words == ["VAR=x", "a2a-proxy", "stdio", *map(str, options), "--", "agent", "--flag"]


def test_a_program_outside_the_path_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(_CARD)
    ran = run(
        tmp_path / "state", "a2a-proxy", "wrap-card", tmp_path / "card.json", PATH="/usr/bin:/bin"
    )
    assert json.loads(ran.out)["url"] == f"VAR=x {program('a2a-proxy')} stdio -- agent --flag"


def test_an_already_wrapped_card_is_unchanged(tmp_path: Path) -> None:
    once = wrap(tmp_path, _CARD, "--record", "x.db").out
    again = wrap(tmp_path, once)
    assert (again.code, again.out, again.err) == (0, once, "")


def test_the_card_is_read_from_stdin(tmp_path: Path) -> None:
    """And bytes that a byte order mark begins."""
    data = b"\xef\xbb\xbf" + _CARD.encode()
    line = [program("a2a-proxy"), "wrap-card", "-"]
    done = subprocess.run(
        line, input=data, capture_output=True, timeout=SECONDS, env=environment(tmp_path / "state")
    )
    assert done.returncode == 0
    assert done.stdout.startswith(data[:20])
    assert b"stdio -- agent" in done.stdout


def test_a_signed_card_is_unchanged_with_a_message(tmp_path: Path) -> None:
    card = json.dumps({**json.loads(_CARD), "signatures": [{"protected": "x", "signature": "y"}]})
    ran = wrap(tmp_path, card)
    assert (ran.code, ran.out) == (1, card)
    assert "error: the card is signed" in ran.err
    assert "hint: " in ran.err
    assert "a2a-proxy stdio -- agent --flag" in ran.err


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (
            {"url": "http://host/", "preferredTransport": "JSONRPC"},
            "no stdio interface with a command",
        ),
        ({"name": "x"}, "no stdio interface with a command"),
        ({"url": "https://x", "transport": "stdio"}, "'https://x', which is not a command"),
        ({"url": "", "preferredTransport": "stdio"}, "'', which is not a command"),
        ({"url": "KEY=x", "preferredTransport": "stdio"}, "'KEY=x', which is not a command"),
    ],
)
def test_a_card_without_stdio_interfaces_is_an_error(
    tmp_path: Path, card: dict[str, Any], message: str
) -> None:
    ran = wrap(tmp_path, card)
    assert (ran.code, ran.out) == (1, json.dumps(card))
    assert message in ran.err
    assert "hint: " in ran.err


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("{", "the card is not JSON"),
        ("", "the card is not JSON"),
        ("[1]", "the card is JSON, but not an object"),
    ],
)
def test_invalid_cards_are_refused(tmp_path: Path, card: str, message: str) -> None:
    ran = wrap(tmp_path, card)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "hint: " in ran.err


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    ran = run(tmp_path / "state", "a2a-proxy", "wrap-card", tmp_path / "nowhere.json")
    assert ran.code == 2
    assert "cannot read" in ran.err
    assert "no such file" in ran.err


def test_the_wrapped_command_runs(tmp_path: Path) -> None:
    """A client that splits the wrapped command talks to the same agent."""
    command = shlex.join(agent("plain", tmp_path / "received"))
    recording = tmp_path / "wrapped.a2a.db"
    ran = wrap(tmp_path, {"url": command, "preferredTransport": "stdio"}, "--record", recording)
    words = shlex.split(json.loads(ran.out)["url"])
    client = Client([program(words[0]), *words[1:]], tmp_path / "state")
    client.read()
    client.write(CARD)
    client.expect(b'"piped"')
    client.close()
    assert client.end()[0] == 0
    assert (tmp_path / "received").read_bytes() == CARD
