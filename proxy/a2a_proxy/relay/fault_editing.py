"""The editing of a connection with faults: the end of the agent's bytes waits for the bytes that a fault delays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.connection_editing import ConnectionEditing, WorkQueue, Write, make_editor
from a2a_proxy.relay.edits.edit import EditFact, EditPlan, Output
from a2a_proxy.relay.edits.fault_editor import FaultEditor, FaultStage
from a2a_proxy.relay.edits.http1_faults import Http1Faults
from a2a_proxy.relay.edits.http2_faults import Http2Faults


class FaultEditing(ConnectionEditing):
    """Runs the editor of a connection with faults. While bytes for the client wait, no more are read from the agent."""

    def __init__(
        self,
        editor: FaultEditor,
        loop: asyncio.AbstractEventLoop,
        queue: WorkQueue,
        writes: tuple[Write, Write],
        on_edits: Callable[[list[EditFact]], None],
        delay: Callable[[Direction, bool], None],
    ) -> None:
        """Create the editing of one connection; the arguments are those of `ConnectionEditing`."""
        super().__init__(editor, loop, queue, writes, writes, on_edits, delay)
        self._fault_editor = editor
        self._is_delaying = False

    def _write_outputs(self, parts: list[Output]) -> list[EditFact]:
        facts = super()._write_outputs(parts)
        delays = self._fault_editor.is_delaying
        if delays is not self._is_delaying:
            self._is_delaying = delays
            self._delay(Direction.TO_CLIENT, delays)
        return facts


def make_fault_editor(http2: bool, plan: EditPlan, faults: FaultPlan) -> FaultEditor:
    """Return the editor for a connection: `http2` says whether it begins with the HTTP/2 preface."""
    stage: FaultStage = Http2Faults(faults) if http2 else Http1Faults(faults)
    return FaultEditor(stage, make_editor(http2, plan) if plan.changes_messages else None)
