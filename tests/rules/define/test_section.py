"""A finding cites the sections of the version of its traffic."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Dialect
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

_OLD_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}}
_OLD_SEND = {
    "message": {
        "kind": "message",
        "messageId": "m1",
        "role": "user",
        "parts": [{"kind": "text", "text": "hello"}],
    }
}


@pytest.mark.parametrize(
    ("rule", "dialect", "section"),
    [
        ("A2A-RPC-001", Dialect.V1_0, "1.0 9.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-RPC-001", Dialect.V1_1, "1.0 9.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-RPC-001", Dialect.V0_3, "0.3 3.2.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-RPC-001", Dialect.V0_2, "0.3 3.2.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-RPC-001", Dialect.V0_1, "1.0 9.1; 0.3 3.2.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-RPC-001", Dialect.UNKNOWN, "1.0 9.1; 0.3 3.2.1; JSON-RPC 2.0; RFC 8259"),
        ("A2A-VER-007", Dialect.V0_3, "1.0 3.6.2"),
        ("A2A-SCH-013", Dialect.V1_0, "0.3 6.6"),
    ],
)
def test_sections_of_a_dialect(rule: str, dialect: Dialect, section: str) -> None:
    assert all_rules()[rule].section_for(dialect) == section


@pytest.mark.parametrize(
    ("script", "rule", "section"),
    [
        (
            rpc_stream("message/stream", _OLD_SEND, _OLD_TASK, version=""),
            "A2A-STREAM-007",
            "0.3 7.2",
        ),
        (
            rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING")),
            "A2A-STREAM-007",
            "1.0 3.1.2",
        ),
        (
            rpc("tasks/get", {"id": "t1"}, _OLD_TASK | {"odd": 1}, version=""),
            "A2A-SCH-010",
            "0.3 6",
        ),
        (rpc("GetTask", {"id": "t1"}, task(odd=1)), "A2A-SCH-010", "1.0 5.7"),
    ],
)
def test_a_finding_cites_the_version_of_its_traffic(
    script: Script, rule: str, section: str
) -> None:
    (found,) = [each for each in findings(script) if each.rule == rule]
    assert found.evidence["section"] == section
