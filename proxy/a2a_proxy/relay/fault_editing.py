"""Makes the editor of a connection with faults."""

from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.relay.connection_editing import make_editor
from a2a_proxy.relay.edits.edit import Editor, EditPlan
from a2a_proxy.relay.edits.fault_editor import FaultEditor
from a2a_proxy.relay.edits.http1_faults import Http1Faults
from a2a_proxy.relay.edits.http2_faults import Http2Faults


def make_fault_editor(http2: bool, plan: EditPlan, faults: FaultPlan) -> FaultEditor:
    """Return the editor for a connection: `http2` says whether it begins with the HTTP/2
    preface."""
    stage: Editor = Http2Faults(faults) if http2 else Http1Faults(faults)
    return FaultEditor(stage, make_editor(http2, plan) if plan.changes_messages else None)
