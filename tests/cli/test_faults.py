"""What the user is told about faults on purpose."""

from __future__ import annotations

import pytest

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.console import make_console
from a2a_proxy.cli.faults import make_fault_plan, report_missed_faults
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding


def test_faults_that_never_happened_are_explained(capfd: pytest.CaptureFixture[str]) -> None:
    """A session without calls has no recording, so that its lines name no command that lists
    calls."""
    faults = [
        "reset at CancelTask",
        "fail 503 at webhook",
        "drop 9 of SubscribeToTask",
        "fail ABORTED at SubscribeToTask",
    ]
    plan = make_fault_plan(faults)
    assert plan is not None
    plan.open_call("SubscribeToTask", Binding.REST)
    console = make_console(ProxyArguments())
    report_missed_faults(plan, console)
    console.close()
    output = capfd.readouterr()
    text = output.out + output.err
    assert "this fault never happened: reset at CancelTask (no call of CancelTask came)" in text
    assert "the client must make the call through the proxy" in text
    assert "this fault never happened: fail 503 at webhook (no delivery to a webhook came)" in text
    assert "deliveries come through the proxy with --webhooks or --forward" in text
    assert "this fault never happened: drop 9 of SubscribeToTask (no event fits)" in text
    assert text.count("a2a-inspect ls") == 1
    assert (
        "this fault never happened: fail ABORTED at "
        "SubscribeToTask (no gRPC call of SubscribeToTask came)" in text
    )
    assert "calls of every binding fail with an HTTP status: fail 503" in text


def test_an_empty_fault_is_an_error() -> None:
    with pytest.raises(UserError, match="--fault: the fault is empty") as failed:
        make_fault_plan([""])
    assert failed.value.hint == "for example: drop status 2 of SendStreamingMessage call 1"
