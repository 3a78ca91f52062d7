"""Which calls and events faults concern, and how often they happen."""

from __future__ import annotations

import pytest

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import CallFaults, EventFacts, FaultPlan
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind

STREAM = "SendStreamingMessage"
TASK = EventFacts(EventKind.TASK, int(TaskState.SUBMITTED))
WORKING = EventFacts(EventKind.STATUS, int(TaskState.WORKING))
ARTIFACT = EventFacts(EventKind.ARTIFACT)
COMPLETED = EventFacts(EventKind.STATUS, int(TaskState.COMPLETED), ends_turn=True)


def plan(*faults: str) -> FaultPlan:
    return FaultPlan([parse_live_fault(each) for each in faults])


def matched(faults: CallFaults | None, *events: EventFacts) -> list[list[str]]:
    assert faults is not None
    return [[fault.verb for fault in faults.match_event(each)] for each in events]


def test_events_are_found_by_number_kind_state_and_end() -> None:
    made = plan(
        f"drop 2 of {STREAM}",
        f"dup status 2 of {STREAM}",
        "cut completed of *",
        "stall 1s before last of *",
    )
    found = matched(
        made.open_call(STREAM, Binding.GRPC), TASK, WORKING, ARTIFACT, COMPLETED, COMPLETED
    )
    assert found == [[], ["drop"], [], ["dup", "cut", "stall"], []]


def test_a_swap_names_two_events_also_of_one_kind() -> None:
    made = plan("swap status status 2 of *").open_call(STREAM, Binding.REST)
    assert matched(made, WORKING, COMPLETED) == [["swap"], ["swap"]]


def test_calls_are_counted_by_operation() -> None:
    made = plan(f"drop 1 of {STREAM} call 2", "reset at * call 3")
    assert made.open_call(STREAM, Binding.REST) is None
    assert made.open_call("GetTask", Binding.REST) is None
    both = made.open_call(STREAM, Binding.GRPC)
    assert both is not None
    assert both.refusal is made.faults[1]
    assert matched(both, TASK) == [["drop"]]
    assert made.open_call(STREAM, Binding.GRPC) is None


def test_streams_alone_lose_events() -> None:
    made = plan("drop 1 of * call 1")
    assert made.open_call("GetTask", Binding.REST) is None
    assert made.open_call(STREAM, Binding.REST) is not None


def test_codes_belong_to_a_binding() -> None:
    made = plan("fail UNAVAILABLE at *", "fail -32603 at *")
    for binding, count in ((Binding.REST, 0), (Binding.GRPC, 1), (Binding.JSONRPC, 1)):
        assert (made.open_call("GetTask", binding) is not None) == bool(count)
    assert plan("fail 503 at *").open_call("GetTask", Binding.GRPC) is not None


def test_deliveries_fail_only_if_webhooks_are_named() -> None:
    assert plan("fail 503 at *").open_call("webhook", Binding.WEBHOOK) is None
    assert plan("fail 503 at webhook").open_call("webhook", Binding.WEBHOOK) is not None
    assert plan("fail 503 at webhook").open_call("GetTask", Binding.REST) is None


def test_faults_that_have_not_happened_are_known() -> None:
    made = plan("fail 503 at GetTask", f"drop 1 of {STREAM}", f"slice 3 of {STREAM}")
    failing, stream = made.open_call("GetTask", Binding.REST), made.open_call(STREAM, Binding.REST)
    assert failing is not None
    assert stream is not None
    failing.count_refusal()
    assert stream.count_response() == [f"slice 3 of {STREAM}"]
    assert [(each.fault.text, each.calls) for each in made.missed] == [(f"drop 1 of {STREAM}", 1)]
    for fault in stream.match_event(TASK):
        stream.count_event(fault)
    assert made.missed == ()
    assert made.happened == [1, 1, 1]


@pytest.mark.parametrize(
    ("fault", "calls", "reason"),
    [
        ("reset at CancelTask", "", "no call of CancelTask came"),
        ("fail 503 at *", "", "no call came"),
        ("drop 1 of *", "GetTask", "no streaming call came"),
        ("fail UNAVAILABLE at GetTask", "GetTask", "no gRPC call of GetTask came"),
        ("fail -32603 at *", "", "no JSON-RPC call came"),
        ("fail 503 at webhook", "", "no delivery to a webhook came"),
        ("fail 503 at GetTask call 2", "GetTask", "only 1 call of GetTask came"),
        ("fail 503 at GetTask call 3", "GetTask GetTask", "only 2 calls of GetTask came"),
        ("fail 503 at webhook call 3", "webhook webhook", "only 2 deliveries to webhooks came"),
        (f"drop 9 of {STREAM}", STREAM, "no event fits"),
        (f"slow 1s every {STREAM}", STREAM, "no response had an event"),
        ("reset at GetTask", "GetTask", "another fault ended the call first"),
    ],
)
def test_a_fault_that_has_not_happened_says_why(fault: str, calls: str, reason: str) -> None:
    made = plan(fault)
    for operation in calls.split():
        made.open_call(operation, Binding.WEBHOOK if operation == "webhook" else Binding.REST)
    (missed,) = made.missed
    assert missed.reason == reason
