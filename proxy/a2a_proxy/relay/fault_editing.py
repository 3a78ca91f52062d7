"""Makes the editor of a connection with faults."""

from __future__ import annotations

import importlib

from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.relay.connection_editing import make_editor
from a2a_proxy.relay.edits.edit import Editor, EditPlan
from a2a_proxy.relay.edits.fault_editor import FaultEditor


def load_stages() -> None:
    """Load all that faults need, because the first call would wait for it."""
    for name in ("http1_faults", "http2_faults"):
        importlib.import_module(f"a2a_proxy.relay.edits.{name}")


def make_fault_editor(http2: bool, plan: EditPlan, faults: FaultPlan) -> FaultEditor:
    """Return the editor for a connection: `http2` says whether it begins with the HTTP/2 preface."""
    stage: Editor
    if http2:
        from a2a_proxy.relay.edits.http2_faults import Http2Faults

        stage = Http2Faults(faults)
    else:
        from a2a_proxy.relay.edits.http1_faults import Http1Faults

        stage = Http1Faults(faults)
    return FaultEditor(stage, make_editor(http2, plan) if plan.changes_messages else None)
