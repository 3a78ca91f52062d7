"""One number of findings everywhere: `check`, `stats`, the screen, the console, the metrics and the
report."""

from __future__ import annotations

import json
from pathlib import Path

from a2a_inspect.data.source import RecordingSource
from a2a_proxy.follower.metrics.session_reader import MetricsSession
from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.finding_totals import is_total
from a2a_proxy.recorder.recording_output import summarize_session
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from support_cli import run_here
from support_report import reported
from support_rules import record

RULE, TIMES = "A2A-RPC-002", 310


async def test_all_totals_agree(tmp_path: Path) -> None:
    """Of a session in which a rule was broken 310 times; the recording lists 100."""
    script = rpc("GetTask", {"id": "t1"}, task(), envelope={"jsonrpc": None})
    for number in range(2, TIMES + 1):
        script += rpc("GetTask", {"id": "t1"}, task(), id=number, envelope={"jsonrpc": None})
    record(path := tmp_path / "r.db", script.make_chunks())
    with Recording(path) as recording:
        rows = [row.finding for row in recording.read_findings()]
    assert len([each for each in rows if each.rule == RULE and not is_total(each)]) == 100

    done = summarize_session(path, 1)
    counts = {(each.total.rule, each.total.severity): each.total.count for each in done.rules}
    assert counts[RULE, Severity.ERROR] == TIMES
    assert done.findings == sum(counts.values())

    checked = json.loads(run_here(tmp_path, "check", path, "--format", "json").lines[-1])
    assert (checked["error"], checked["warning"]) == (done.error_findings, done.warning_findings)
    assert checked["error"] + checked["warning"] + checked["info"] == done.findings
    assert f"{RULE} " in run_here(tmp_path, "check", path).out
    assert f"  {TIMES} times" in run_here(tmp_path, "check", path).out

    totals = json.loads(run_here(tmp_path, "stats", path, "--json").out)["findings"]
    assert {
        (each["rule"], Severity[each["severity"].upper()]): each["count"] for each in totals
    } == counts

    source = RecordingSource(path)
    snapshot = await source.poll()
    source.close()
    assert snapshot is not None
    assert snapshot.findings == done.findings
    assert sum(reported(path).index["grave"].values()) == done.findings

    with Recording(path) as recording:
        metrics = MetricsSession(recording, recording.read_sessions()[0])
        while metrics.read_new_rows():
            pass
    counter = f'a2a_proxy_findings_total{{rule="{RULE}",severity="error"}} {TIMES}.0'
    assert counter in metrics.numbers.format_exposition().decode()

    assert "findings of connections" not in run_here(tmp_path, "ls", path).out
