"""`a2a-inspect card`: sources, findings, formats, probes and exit codes."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import msgspec
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from junitparser import JUnitXml

from a2a_inspect.commands.card.judge import card_rules, judge_card
from a2a_inspect.commands.card.source import CardSource
from a2a_proxy.cli.card.fetch import fetch_card
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.conversation import rpc_error
from a2a_proxy.rules.examples.objects import CARD_KEYS, Json, card, sign_card
from support_cards import PATH, http_agent
from support_cli import Ran, run_here
from support_signed_cards import FOLDER, KEYS, private_jwk

SARIF = (
    Path(__file__).parents[4]
    / ".peers/js/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
)
OLD_PATH = "/.well-known/agent.json"
HEADERS = {"Content-Type": "application/json", "Cache-Control": "max-age=60", "ETag": '"1"'}
OLD_CARD = card(
    supportedInterfaces=None,
    protocolVersion="0.3.0",
    url="http://localhost:8000/",
    preferredTransport="JSONRPC",
    capabilities={"streaming": True},
)
MIXED_CARD = card(
    url="http://localhost:8001/", preferredTransport="JSONRPC", security=[{"key": []}]
)


def check(tmp_path: Path, *words: object) -> Ran:
    return run_here(tmp_path / "state", "card", *words)


def check_value(tmp_path: Path, value: object, *words: object) -> Ran:
    """Check a card in a file."""
    (tmp_path / "card.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return check(tmp_path, tmp_path / "card.json", *words)


def findings(done: Ran) -> dict[str, list[Json]]:
    """The findings of a JSON report by rule."""
    found: dict[str, list[Json]] = {}
    for each in map(json.loads, done.lines):
        if each["event"] == "finding":
            found.setdefault(each["rule"], []).append(each)
    return found


async def check_served(
    tmp_path: Path, card_of: Callable[[int], Json], *words: object, path: str = PATH, **headers: str
) -> Ran:
    """Check the card of an agent at its URL; `card_of` gets the agent's port. JSON-RPC calls get
    TaskNotFound."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == path:
            port = request.transport.get_extra_info("sockname")[1]  # type: ignore[union-attr]
            return web.Response(text=json.dumps(card_of(port)), headers=HEADERS | headers)
        if request.method == "POST":
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "error": rpc_error(-32001, "TASK_NOT_FOUND", "no such task"),
            }
            return web.json_response(body)
        return web.Response(status=404)

    async with http_agent(answer) as port:
        return await asyncio.to_thread(check, tmp_path, f"http://127.0.0.1:{port}", *words)


def served_card(port: int, *bindings: str) -> Json:
    entries = [
        {"url": f"http://127.0.0.1:{port}/", "protocolBinding": each, "protocolVersion": "1.0"}
        for each in bindings
    ]
    return card(supportedInterfaces=entries)


# --- sources


def test_a_good_card_in_a_file(tmp_path: Path) -> None:
    """What it is, which rules ran, and exit code 0."""
    done = check_value(tmp_path, card())
    assert (done.code, done.err) == (0, "")
    first, rules, found = done.lines
    assert first == f'{tmp_path}/card.json: card "Example" 1.0.0, A2A 1.0, 3 interfaces, 1 skill'
    assert rules.startswith("26 rules ran: CARD 003-008 012 014-018, ")
    assert found == "found: 0 errors, 0 warnings, 0 infos"


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte order mark, as editors on Windows write it, is skipped."""
    data = b"\xef\xbb\xbf" + json.dumps(card()).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    done = check(tmp_path, "-")
    assert (done.code, done.lines[0][:21]) == (0, 'stdin: card "Example"')


async def test_a_url_also_runs_the_rules_about_the_response(tmp_path: Path) -> None:
    done = await check_served(tmp_path, lambda port: served_card(port, "JSONRPC"))
    assert (done.code, done.err) == (0, "")
    assert f'{PATH}: card "Example" 1.0.0, A2A 1.0, 1 interface, 1 skill' in done.lines[0]
    assert "30 rules ran: CARD 001-008 010 012 014-018 020, " in done.out
    done = await check_served(
        tmp_path, lambda _: card(), "--format", "json", ETag="", **{"Content-Type": "text/plain"}
    )
    assert {"A2A-CARD-002", "A2A-CARD-010"} <= set(findings(done))


async def test_the_older_path_is_noted(tmp_path: Path) -> None:
    """And CARD-001 reports that clients of 0.3 and later do not find the card."""
    done = await check_served(tmp_path, lambda _: OLD_CARD, "--format", "json", path=OLD_PATH)
    (session,) = [each for each in map(json.loads, done.lines) if each["event"] == "session"]
    assert session["notes"] == [f"note: {OLD_PATH} answered; {PATH} answered 404"]
    assert session["recording"].endswith(OLD_PATH)
    assert "A2A-CARD-001" in findings(done)


async def test_the_address_of_the_client_is_known(tmp_path: Path) -> None:
    """On the agent's machine its loopback URLs are right; on another machine they lead nowhere."""
    done = await check_served(tmp_path, lambda _: OLD_CARD, "--format", "json")
    assert "A2A-CARD-020" not in findings(done)

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(OLD_CARD)

    async with http_agent(answer) as port:
        (response,) = await fetch_card(f"http://127.0.0.1:{port}")
    assert response.client == "127.0.0.1"
    far = msgspec.structs.replace(response, client="192.0.2.7")
    found, _ = judge_card(
        CardSource("", [far], True), card_rules(fetched=True), Redactor(b"k" * 32), now=1
    )
    assert [each.summary for each in found if each.rule == "A2A-CARD-020"] == [
        (
            'the card names the JSONRPC interface "http://localhost:8000/", '
            "which a client on another machine cannot reach"
        )
    ]


def test_rules_that_need_a_session_are_not_run() -> None:
    """Each rule of the family that a card alone can show runs, and none that compares it with other
    traffic."""
    fetched, read = card_rules(fetched=True), card_rules(fetched=False)
    family = {ident for ident in all_rules() if ident.startswith("A2A-CARD-")}
    assert family - set(fetched) == {"A2A-CARD-009", "A2A-CARD-011", "A2A-CARD-013"}
    assert set(card_rules(fetched=True, has_keys=True)) - set(fetched) == {"A2A-CARD-013"}
    assert set(fetched) - set(read) == {
        "A2A-CARD-001",
        "A2A-CARD-002",
        "A2A-CARD-010",
        "A2A-CARD-020",
    }
    assert {each.partition("-")[2][:4] for each in fetched} == {
        "CARD",
        "HTTP",
        "RPC-",
        "SCH-",
        "STDI",
    }


RULES = [
    rule for rule in card_rules(fetched=False, has_keys=True).values() if rule.family == "CARD"
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_findings_are_those_of_a_recording(rule: Any, tmp_path: Path) -> None:
    """The card of each rule's flagged example is flagged, that of the clean example is not."""
    keys = tmp_path / "keys.json"
    keys.write_bytes(CARD_KEYS)
    for script, flagged in ((rule.flagged, True), (rule.clean, False)):
        body = next(
            each.data for each in script.make_chunks() if each.data.startswith(b"HTTP/1.1")
        ).partition(b"\r\n\r\n")[2]
        done = check_value(tmp_path, body.decode(), "--format", "json", "--card-keys", keys)
        assert (rule.id in findings(done)) is flagged


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html>", "card.json is an HTML page, not an agent card"),
        ("", "card.json is empty, not an agent card"),
        ("[]", "is JSON, but not an object"),
        ('{"name": "a",}', "card.json is not JSON: "),
        (" " * (1 << 20) + "{}", "card.json has more than 1 MiB: this is not an agent card"),
    ],
)
def test_a_file_that_is_no_card(tmp_path: Path, text: str, message: str) -> None:
    """Exit code 2, one error line, one hint line."""
    done = check_value(tmp_path, text)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert message in error
    assert (
        hint == "a2a-inspect: hint: an agent card is one JSON object: check the file or the input"
    )


def test_a_missing_file(tmp_path: Path) -> None:
    done = check(tmp_path, "localhost:8000")
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error == "a2a-inspect: error: cannot read localhost:8000: no such file or directory"
    assert hint.endswith("a URL with its scheme: http://localhost:8000")


async def test_an_agent_without_a_card(tmp_path: Path) -> None:
    done = await check_served(tmp_path, lambda _: card(), path="/elsewhere")
    assert (done.code, done.out) == (2, "")
    assert "no agent card: 404 from http://127.0.0.1:" in done.err


# --- findings


def test_a_0_3_card_is_valid_and_can_be_migrated(tmp_path: Path) -> None:
    done = check_value(tmp_path, OLD_CARD)
    assert done.code == 0
    assert "A2A 0.3.0, 1 interface" in done.lines[0]
    assert "          `url` is the 0.3 form; in 1.0: `supportedInterfaces[].url`" in done.out
    assert check_value(tmp_path, OLD_CARD, "--fail-on", "info").code == 1
    assert (
        check_value(
            tmp_path, OLD_CARD, "--fail-on", "info", "--ignore", "migration", "--ignore", "CARD"
        ).code
        == 0
    )


def test_a_card_with_both_forms(tmp_path: Path) -> None:
    done = check_value(tmp_path, MIXED_CARD, "--format", "json")
    found = findings(done)
    assert "A2A-CARD-015" in found
    assert {each["evidence"]["path"]: each["severity"] for each in found["MIGRATION"]} == {
        "url": "info",
        "preferredTransport": "info",
        "security": "warning",
    }
    assert "A2A 0.3 and 1.0" in check_value(tmp_path, MIXED_CARD).lines[0]


def test_an_object_that_is_no_card_lacks_everything(tmp_path: Path) -> None:
    done = check_value(tmp_path, {"detail": "x"}, "--format", "json")
    assert done.code == 1
    assert len(findings(done)["A2A-CARD-003"]) == 8


def test_secrets_are_labels(tmp_path: Path) -> None:
    """In every format; a password in a URL of an interface too."""
    bad = card(
        name="AKIAIOSFODNN7EXAMPLF",
        documentationUrl="https://ann:pa55w0rd-s3cret@docs.example.com",
        supportedInterfaces=[
            {
                "url": "http://ann:pa55w0rd-s3cret@127.0.0.1:1/",
                "protocolBinding": "GRPC",
                "protocolVersion": "1",
            }
        ],
    )
    for form in ("text", "json", "junit", "sarif"):
        done = check_value(tmp_path, bad, "--format", form, "--probe")
        assert "A2A-CARD-016" in done.out
        assert "s3cret" not in done.out + done.err


async def test_secrets_of_the_url_are_not_printed(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(card())

    async with http_agent(answer) as port:
        for form in ("text", "json", "junit", "sarif"):
            url = f"http://ann:s3cret@127.0.0.1:{port}/a?token=s3cret"
            done = await asyncio.to_thread(check, tmp_path, url, "--format", form)
            assert done.code == 0
            assert "s3cret" not in done.out + done.err


def test_a_large_card_is_judged_as_a_whole(tmp_path: Path) -> None:
    skill = card()["skills"][0] | {"description": "x" * 1000}
    many = [skill | {"id": str(number)} for number in range(900)] + [skill | {"id": "7"}]
    done = check_value(tmp_path, card(skills=many), "--format", "json")
    (found,) = findings(done)["A2A-CARD-017"]
    assert found["evidence"]["path"] == "skills[900].id"


# --- options


def test_select_and_suppressions(tmp_path: Path) -> None:
    lacking = card(version=None)
    assert check_value(tmp_path, lacking, "--select", "SCH", "--select", "MIGRATION").code == 0
    assert check_value(tmp_path, lacking, "--select", "CARD-003").code == 1
    (tmp_path / "s.toml").write_text(
        '[[suppress]]\nrule = "A2A-CARD-003"\nreason = "it has none"\n'
    )
    done = check_value(tmp_path, lacking, "--suppressions", tmp_path / "s.toml")
    assert (done.code, "1 suppressed" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--select", "GEN"), "no rule is chosen"),
        (("--select", "PROBE"), "--select PROBE: no rule id begins with it"),
        (("--select", "UNDECODABLE"), "no rule id begins with it"),
        (("--output", "card.json"), "card.json is an input of this check"),
    ],
)
def test_options_that_cannot_be_used(
    words: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = check_value(tmp_path, card(), *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_the_report_in_a_file(tmp_path: Path) -> None:
    """The text goes to the terminal."""
    done = check_value(tmp_path, OLD_CARD, "--format", "json", "--output", tmp_path / "r.json")
    assert "MIGRATION" in (tmp_path / "r.json").read_text()
    assert "found: 0 errors" in done.out


async def test_sarif(tmp_path: Path) -> None:
    """Valid; the location is the URL of the card, notes are notifications, descriptions include
    this command's."""
    done = await check_served(tmp_path, lambda _: MIXED_CARD, "--format", "sarif", path=OLD_PATH)
    document = json.loads(done.out)
    if SARIF.exists():
        jsonschema.validate(document, json.loads(SARIF.read_text()))
    (run,) = document["runs"]
    results = {each["ruleId"]: each for each in run["results"]}
    (location,) = results["MIGRATION"]["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith("http://127.0.0.1:")
    assert uri.endswith(OLD_PATH)
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "session 1"
    assert "MIGRATION" in {each["id"] for each in run["tool"]["driver"]["rules"]}
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (note["level"], "answered 404" in note["message"]["text"]) == ("note", True)


def test_junit(tmp_path: Path) -> None:
    done = check_value(tmp_path, card(version=None), "--format", "junit")
    (suite,) = JUnitXml.fromstring(done.out)
    assert (suite.failures, len(list(suite))) == (1, len(card_rules(fetched=False)))
    (suite,) = JUnitXml.fromstring(check_value(tmp_path, OLD_CARD, "--format", "junit").out)
    assert [case.classname for case in suite if case.name == "MIGRATION"] == ["a2a.card"]


# --- probes


async def test_nothing_is_sent_without_probe(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        port = request.transport.get_extra_info("sockname")[1]  # type: ignore[union-attr]
        return web.json_response(served_card(port, "JSONRPC", "HTTP+JSON"))

    async with http_agent(answer) as port:
        await asyncio.to_thread(check, tmp_path, f"http://127.0.0.1:{port}")
    assert asked == [PATH]


async def test_probes(tmp_path: Path) -> None:
    """An interface that answers is a note, another one an error at its URL in the card; both name
    the interface."""
    done = await check_served(
        tmp_path,
        lambda port: served_card(port, "JSONRPC", "HTTP+JSON", "urn:x"),
        "--probe",
        "--format",
        "json",
    )
    assert done.code == 1
    (session,) = [each for each in map(json.loads, done.lines) if each["event"] == "session"]
    answered, skipped = session["notes"]
    assert answered.startswith("probe: JSONRPC 1.0 at http://127.0.0.1:")
    assert answered.endswith("/: TASK_NOT_FOUND -32001: no such task")
    assert skipped.endswith("not probed: urn:x is not a core binding")
    (found,) = findings(done)["PROBE"]
    assert (found["severity"], found["operation"]) == ("error", "GetTask")
    assert found["evidence"]["path"] == "supportedInterfaces[1].url"
    assert found["summary"].startswith("HTTP+JSON 1.0 at http://127.0.0.1:")


def test_a_card_without_interfaces(tmp_path: Path) -> None:
    assert (
        "probe: the card declares no interface"
        in check_value(tmp_path, card(supportedInterfaces=[]), "--probe").out
    )


def test_signatures_are_shown_with_their_verdict(tmp_path: Path) -> None:
    """Without keys, with them, altered, and with a private key in the file."""
    signed = sign_card(card())
    keys = tmp_path / "keys.json"
    keys.write_bytes(CARD_KEYS)
    assert "  card signed by key-1 (HS256), not verified" in check_value(tmp_path, signed).lines
    done = check_value(tmp_path, signed, "--card-keys", keys)
    assert ("  card signed by key-1 (HS256), verified" in done.lines, done.err) == (True, "")
    done = check_value(
        tmp_path, signed | {"name": "Another"}, "--card-keys", keys, "--fail-on", "warning"
    )
    assert (done.code, "A2A-CARD-013" in done.out, "does not verify" in done.out) == (1, True, True)
    keys.write_text(json.dumps(private_jwk(Ed25519PrivateKey.generate(), kid="key-2")))
    done = check_value(tmp_path, signed, "--card-keys", keys)
    assert done.err.startswith(
        f"a2a-inspect: warning: --card-keys {keys} has private keys (key-2): only their public "
    )
    assert (
        "  card signed by key-1 (HS256), not verified: --card-keys has no key key-1" in done.lines
    )


def test_only_another_form_than_that_of_the_specification(tmp_path: Path) -> None:
    done = check(
        tmp_path, FOLDER / "python-1.1.2" / "umlauts.json", "--card-keys", KEYS, "--format", "json"
    )
    (found,) = findings(done)["A2A-CARD-013"]
    assert (found["severity"], found["summary"]) == (
        "info",
        "the card signed by python-1.1.2 verifies only in the form: Python SDK 1.1.2",
    )


def test_a_report_does_not_overwrite_the_keys(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(CARD_KEYS)
    done = check_value(tmp_path, card(), "--card-keys", keys, "--output", keys)
    assert (done.code, keys.read_bytes()) == (2, CARD_KEYS)
