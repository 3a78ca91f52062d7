"""Faults on purpose: the plan of `--fault`, and the lines of a run about its faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from a2a_proxy.cli.errors import option_errors

if TYPE_CHECKING:
    from a2a_proxy.cli.console import Console
    from a2a_proxy.faults.plan import FaultPlan


def make_fault_plan(texts: Sequence[str]) -> FaultPlan | None:
    """Return the plan of `--fault`, or None without one. Raises UserError with a caret under what
    is wrong."""
    if not texts:
        return None
    from a2a_proxy.faults.live import parse_live_fault
    from a2a_proxy.faults.plan import FaultPlan

    with option_errors("--fault"):
        return FaultPlan([parse_live_fault(text) for text in texts])


def announce_faults(plan: FaultPlan, console: Console) -> None:
    """Tell the user at the start which faults the proxy makes."""
    for fault in plan.faults:
        console.show_note(f"fault on purpose: {fault.text}", loud=False)


def report_missed_faults(plan: FaultPlan, console: Console) -> None:
    """Tell the user at the end which faults have not happened, and why."""
    from a2a_proxy.faults.live import WEBHOOK

    for missed in plan.missed:
        if missed.calls:
            hint = "a2a-inspect ls shows the calls, a2a-inspect show their events"
        elif missed.fault.operation == WEBHOOK:
            hint = "deliveries come through the proxy with --webhooks or --forward"
        elif missed.fault.grpc_status >= 0 or missed.fault.code < 0:
            hint = "calls of every binding fail with an HTTP status: fail 503"
        else:
            hint = "the client must make the call through the proxy"
        console.show_note(f"this fault never happened: {missed.fault.text} ({missed.reason})", hint)
