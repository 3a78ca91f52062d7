"""Findings on the console while the proxy runs, and the exit code that they cause."""

from __future__ import annotations

import datetime
import json
import re
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Dialect, Finding, Severity
from a2a_proxy.present.text import finding_object
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.define.catalogue import all_rules
from support_cli import SECONDS, Agent, Proxy, call, run, until

Start = Callable[..., Proxy]


def wrong_call(address: str) -> None:
    """A call without the member `jsonrpc`: the agent answers it all the same."""
    params = {"message": {"messageId": "m-0", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    body = json.dumps({"id": 1, "method": "SendMessage", "params": params}).encode()
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{address}/", body, fields), timeout=SECONDS
    ) as answer:
        answer.read()


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 1), ("warning", 1), ("info", 1), ("never", 0), ("", 0)]
)
def test_an_error_finding_is_printed_recorded_and_may_fail_the_run(
    proxy: Start, agent: Agent, tmp_path: Path, fail_on: str, code: int
) -> None:
    """It is on the console at once and in the recording; whether it fails the run is for the user
    to say."""
    words = ("--fail-on", fail_on) if fail_on else ()
    one = proxy(
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--record",
        tmp_path / "r.db",
        *words,
    )
    wrong_call(one.addresses()[0])
    until(lambda: "error   A2A-RPC-002" in one.out)
    (line,) = [line for line in one.out.splitlines() if "A2A-RPC-002" in line]
    assert re.search(
        r"  #1\.0 \(client's request\)( SendMessage)?  must act: client  no member", line
    )
    assert one.stop() == code
    *_, summary, hint = one.err.splitlines()
    assert re.search(
        r"; [0-9]+ findings? \(1 error(, [0-9]+ (warning|info)s?)*\); capture complete", summary
    )
    assert hint == f"list the findings: a2a-inspect check {tmp_path / 'r.db'}"
    with Recording(tmp_path / "r.db") as recording:
        assert "A2A-RPC-002" in {row.finding.rule for row in recording.read_findings()}


def test_traffic_without_findings_exits_with_0(proxy: Start, agent: Agent) -> None:
    """No finding, exit code 0."""
    one = proxy(
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--fail-on",
        "info",
        "--log-format",
        "json",
    )
    call(one.addresses()[0])
    call(one.addresses()[0], "GetTask")
    assert one.stop() == 0
    assert json.loads(one.out.splitlines()[-1])["findings"] == 0


def test_a_finding_below_the_threshold_does_not_fail_the_run(proxy: Start, agent: Agent) -> None:
    """An info is printed, and `--fail-on error` ignores it."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--fail-on", "error")
    call(one.addresses()[0], "GetTask", **{"Last-Event-ID": "7", "Accept": "text/event-stream"})
    assert one.stop() == 0


def test_a_finding_is_a_json_line(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """On the console, in `show` and in `check`: the same names and the same values."""
    path = tmp_path / "r.db"
    words = (
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--record",
        path,
        "--log-format",
        "json",
    )
    one = proxy(*words)
    wrong_call(one.addresses()[0])
    until(lambda: "A2A-RPC-002" in one.out)
    one.stop()

    def the_one(objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
        return next(each for each in objects if each.get("rule") == "A2A-RPC-002")

    console = the_one(map(json.loads, one.out.splitlines()))
    shown = the_one(
        json.loads(run(one.state, "a2a-inspect", "show", "--json", path).lines[0])["findings"]
    )
    checked = the_one(
        map(json.loads, run(one.state, "a2a-inspect", "check", "--format", "json", path).lines)
    )
    names = {
        "rule",
        "severity",
        "at",
        "summary",
        "connection",
        "exchange",
        "seq",
        "task_id",
        "confidence",
        "evidence",
    }
    for each in (console, shown, checked):
        assert {name: each[name] for name in names} == {name: console[name] for name in names}
    assert console["severity"] == "error"
    assert datetime.datetime.fromisoformat(console["at"]).tzinfo is datetime.UTC
    assert console["operation"] == checked["operation"] == "SendMessage"
    for each in (shown, checked):
        assert (each["section"], each["title"]) == (
            all_rules()["A2A-RPC-002"].section_for(Dialect.V1_0),
            all_rules()["A2A-RPC-002"].title,
        )


def test_numbers_in_the_evidence_stay_numbers_in_json() -> None:
    """How many there were."""
    finding = Finding(
        "A2A-GEN-001", Severity.INFO, 1, "x", evidence={"count": "1000", "value": "7"}
    )
    assert finding_object(finding)["evidence"] == {"count": 1000, "value": "7"}
