"""The generations of each task as the rules see them: the shared tracker, with the contents of
events (manual/protocol.md "Generation tracking").

Rules call `generation_verdicts()`. The first call for a frame updates the tracker; later calls
return the cached result.
"""

from collections.abc import Sequence

from a2a_proxy.model.values import Binding, EventKind
from a2a_proxy.protocol.generation import GenerationReport, TaskGenerations, Verdict
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.protocol.timeline import HISTORY_MARKS, read_timeline
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts.event_digest import artifacts_digest, update_digest
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_OTHER_EVENTS = frozenset({EventKind.MESSAGE, EventKind.UNKNOWN})
"""Events of a proposal (`messageUpdate`, Q-32): tracked only if they have a generation."""
_RETURN_OPERATIONS = frozenset({"SubscribeToTask", "ReconnectToTask"})


def generation_verdicts(context: RuleContext) -> Sequence[Verdict]:
    """Return the faults of this frame's generation, and update the tracker at the first call."""
    found = context.cache.get("generations")
    if found is None:
        found = context.cache["generations"] = _judge_generation(context)
    result: Sequence[Verdict] = found
    return result


def _judge_generation(context: RuleContext) -> Sequence[Verdict]:
    if context.has_flag(FrameFlag.ERROR):
        return _refuse_messages(context)
    frame, task = context.frame, context.task
    if task is None and frame.generation > 0:
        task = context.session.task_record(context.record.agent, frame.task_id)
    if task is None or (frame.event in _OTHER_EVENTS and frame.generation <= 0):
        return ()
    numbers = task.numbers
    if numbers is None:
        if frame.generation <= 0:
            return ()  # the task has never had a generation: nothing to judge or to remember
        numbers = task.numbers = TaskGenerations(
            creator=task.made_by, from_start=task.created_by != 0
        )
    report = _make_report(context, task)
    found = numbers.apply_report(report)
    if report.unreadable and context.binding is not Binding.GRPC:
        return ()  # in JSON this is A2A-GEN-020
    if frame.event is EventKind.TASK and frame.generation > 0 and _may_have_timeline(context):
        timeline = read_timeline(context.object, frame.generation)
        if timeline is not None:
            found = [*found, *numbers.apply_timeline(timeline)]
    return found


def _make_report(context: RuleContext, task: TaskRecord) -> GenerationReport:
    frame, record = context.frame, context.record
    is_update = frame.generation > 0 and frame.event is not EventKind.TASK
    content = update_digest(context) if is_update else ""
    before = context.stream_state_before
    return GenerationReport(
        frame.generation,
        frame.at,
        record.id,
        record.client,
        frame.event,
        record.is_streaming,
        artifacts_digest(context) if frame.generation > 0 and not is_update else content,
        content,
        frame.state,
        frame.artifact_id,
        # Frames are compared within one version, because agents need not number events for clients
        # of an older one.
        "push" if context.binding is Binding.WEBHOOK else context.exchange.version_header,
        progress=frame.event is EventKind.STATUS and context.has_flag(FrameFlag.SAME),
        change=frame.event is EventKind.ARTIFACT or frame.state != before != 0,
        repeat=context.has_flag(FrameFlag.REPEAT),
        unreadable=frame.generation <= 0 and _has_malformed_number(context),
        returns=context.operation in _RETURN_OPERATIONS,
        alone=len(task.streams) <= 1 and record.events <= 1,
    )


def _has_malformed_number(context: RuleContext) -> bool:
    """Return whether `generation` is present but not usable: another fault (A2A-GEN-020), on gRPC a
    negative number."""
    value = context.object.get("generation")
    return value is not None and str(value) != "0"


def _may_have_timeline(context: RuleContext) -> bool:
    frame = context.frame
    return not frame.truncated and (
        is_protobuf(frame.schema) or HISTORY_MARKS.search(frame.payload) is not None
    )


def _refuse_messages(context: RuleContext) -> Sequence[Verdict]:
    """Apply an error that answers a message: the agent has not added it to the task."""
    record = context.record
    if (
        record.events
        or record.operation not in SENDING_OPERATIONS
        or record.request_snapshot is None
    ):
        return ()
    task = context.session.task_record(record.agent, record.request_snapshot.task_id)
    if task is None or task.numbers is None:
        return ()
    return task.numbers.refuse_messages(record.id)
