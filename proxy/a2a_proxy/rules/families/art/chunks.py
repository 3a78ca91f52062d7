"""Rules about artifacts sent in chunks, as successive updates of one stream (A2A 1.0 section
4.2.2)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Event, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.naming import object_prefix
from a2a_proxy.rules.facts.partial_decode import NO_PARTS, add_parts
from a2a_proxy.rules.state.records import KnownArtifact
from a2a_proxy.rules.state.state_sequence import MIN_REPEATED


def _artifact_stream(*events: Event) -> Script:
    return rpc_stream(
        "SendStreamingMessage", send(), snapshot(), *events, status("COMPLETED", second=1)
    )


_CHUNKED = (chunk("It rains "), chunk("in Oslo", append=True, lastChunk=True))
_COMPLETE_STREAM = _artifact_stream(chunk("a"), chunk("b", append=True, lastChunk=True))


def _member_path(context: RuleContext, member: str) -> str:
    return f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}{member}"


def _known_artifact(context: RuleContext) -> KnownArtifact | None:
    return (
        context.task.artifacts.get(context.frame.artifact_id) if context.task is not None else None
    )


@rule(
    "A2A-ART-001",
    "Append to an unknown artifact",
    Severity.ERROR,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ODD_CHUNK,
    flagged=_artifact_stream(chunk("a", append=True, lastChunk=True)),
    clean=_COMPLETE_STREAM,
)
def unknown(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update has `append: true`, but no earlier update or snapshot of the task
    contained this artifact. Reported as information if another stream created the task, because its
    beginning may not have been recorded. Not checked if an earlier event of the stream could not be
    read or does not name its artifact.

    The client has nothing to append to: it drops the chunk, or shows an artifact without its
    beginning. The agent must send the first chunk without `append`, and a proxy in between must not
    drop that chunk. The client can call GetTask for the complete artifact.
    """
    context.needs_payload()
    frame, task = context.frame, context.task
    if (
        not frame.append
        or context.has_flag(FrameFlag.KNOWN_ARTIFACT)
        or task is None
        or context.record.unreadable_at
    ):
        return
    seen = task.created_by == context.record.id
    told = (
        f"`append` is true, but artifact {frame.artifact_id} of task {frame.task_id} has no "
        f"earlier chunk"
    )
    severity = None if seen else Severity.INFO
    yield RuleFinding(
        summary=told,
        path=_member_path(context, "append"),
        value="true",
        severity=severity,
        is_sure=seen,
    )


def _count_updates(count: int) -> str:
    return f"{count} update" if count == 1 else f"{count} updates"


@rule(
    "A2A-ART-002",
    "Append after the last chunk",
    Severity.WARNING,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ODD_CHUNK,
    flagged=_artifact_stream(chunk("a", lastChunk=True), chunk("b", append=True)),
    clean=_COMPLETE_STREAM,
)
def after_last(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update has `append: true` although an earlier update had already completed the
    artifact with `lastChunk: true`, and the artifact was not replaced in between.

    A client that treats the artifact as complete at its last chunk has already used it without this
    content. The agent should set `lastChunk` only on the final chunk. The client should call
    GetTask for the complete artifact.
    """
    found = _known_artifact(context)
    if context.frame.append and found is not None and found.is_complete:
        told = f"artifact {context.frame.artifact_id} is extended after its `lastChunk`"
        yield RuleFinding(
            summary=f"{told}, after {_count_updates(found.chunks)}",
            path=_member_path(context, "append"),
            value="true",
        )


@rule(
    "A2A-ART-003",
    "A chunked artifact was never finished",
    Severity.INFO,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TERMINAL,
    flagged=_artifact_stream(chunk("a"), chunk("b", append=True)),
    clean=_COMPLETE_STREAM,
)
def unfinished(context: RuleContext) -> Iterator[RuleFinding]:
    """The task ends on a stream, but an artifact that this stream sent in several chunks never had
    `lastChunk: true`. Reported once for each artifact, for at most ten artifacts.

    A client that waits for the last chunk before it shows or stores the artifact waits forever. The
    agent should set `lastChunk` on the final chunk. The client should treat the end of the task as
    the end of its artifacts.
    """
    task = context.task
    if task is None or context.stream_state_before == context.frame.state:
        return
    open_ones = [
        (name, each)
        for name, each in task.artifacts.items()
        if each.stream == context.record.id
        and each.appends
        and each.chunks > 1
        and not each.is_complete
    ]
    for name, each in open_ones[:10]:
        told = (
            f"task {task.task_id} ended, but artifact {name} had no `lastChunk` in "
            f"{_count_updates(each.chunks)}"
        )
        yield RuleFinding(summary=told, value=name)


@rule(
    "A2A-ART-004",
    "An artifact was replaced",
    Severity.WARNING,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ODD_CHUNK,
    flagged=_artifact_stream(
        chunk("It rains "), chunk("in Oslo ", append=True), chunk("today", lastChunk=True)
    ),
    clean=_COMPLETE_STREAM,
)
def artifact_replaced(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update without `append` has the id of an artifact that this stream has already
    sent, so it replaces that artifact. This is allowed, and reported as information; as a warning
    (low confidence) if it is the `lastChunk` and has at least a fifth less text than the chunks
    that were appended before. An exact repetition of the bytes is reported as A2A-STREAM-020
    instead.

    Often the agent forgot `append: true`: the client then keeps only the last chunk. The agent must
    set `append` on a chunk that continues the artifact.
    """
    found = _known_artifact(context)
    if not context.frame.append and found is not None and not context.has_flag(FrameFlag.REPEAT):
        before = _count_updates(found.chunks)
        told = (
            f"artifact {context.frame.artifact_id} replaces the content of {before} (no `append`)"
        )
        kept = _find_shorter_end(context, found)
        if kept is not None:
            told += (
                f": {found.length} bytes of text by {kept}, and no more follow; if they continue "
                f"the text, the client loses the earlier text"
            )
        yield RuleFinding(
            summary=told,
            path=_member_path(context, "artifact.artifactId"),
            value=context.frame.artifact_id,
            severity=Severity.INFO if kept is None else None,
            is_sure=kept is None,
        )


def _find_shorter_end(context: RuleContext, before: KnownArtifact) -> int | None:
    """Return the bytes of text in the last chunk of an artifact, if it replaces clearly more text
    that was appended chunk by chunk; None otherwise. The whole text again, without white space at
    its end, is not less."""
    frame = context.frame
    if (
        not (frame.last_chunk and before.appends and before.is_fully_recorded)
        or frame.truncated
        or frame.redacted
    ):
        return None
    chunks = chunks_of_frame(frame)
    content = add_parts(NO_PARTS, chunks[0].pieces) if chunks else NO_PARTS
    is_text = content.length and not (content.byte_count or content.other_parts)
    return content.length if is_text and content.length * 5 <= before.length * 4 else None


@rule(
    "A2A-ART-009",
    "Full text appended after its chunks",
    Severity.WARNING,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.SAME_LENGTH,
    flagged=_artifact_stream(
        chunk("It rains "),
        chunk("in Oslo", append=True),
        chunk("It rains in Oslo", append=True, lastChunk=True),
    ),
    clean=_artifact_stream(*_CHUNKED),
)
def appended_again(context: RuleContext) -> Iterator[RuleFinding]:
    """An update with `append: true` has as its text exactly the joined text of all earlier updates
    of the artifact, at least two on this stream, with at least 16 bytes. The same text without
    `append` replaces the artifact (A2A-ART-004).

    The client appends it, and shows and stores the text twice. The agent must send only new text
    with `append: true`, or leave `append` out of the update with the full text.
    """
    found, frame = _known_artifact(context), context.frame
    if (
        found is None
        or found.stream != context.record.id
        or found.chunks < 2
        or found.length < MIN_REPEATED
    ):
        return
    if len(frame.payload) < found.length or not frame.append or frame.redacted or frame.truncated:
        return
    gate_result = context.gate_result
    looks = [gate_result] if isinstance(gate_result, ArtifactChunk) else chunks_of_frame(frame)
    if (
        looks
        and add_parts(NO_PARTS, looks[0].pieces) == found.content
        and not context.has_flag(FrameFlag.REPEAT)
    ):
        told = (
            f"artifact {frame.artifact_id} had {found.length} bytes in "
            f"{_count_updates(found.chunks)}"
        )
        yield RuleFinding(
            summary=f"{told}; this one appends the same text again",
            path=_member_path(context, "append"),
            value="true",
        )


@rule(
    "A2A-ART-010",
    "Full text sent again as another artifact",
    Severity.INFO,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FURTHER_ARTIFACT,
    flagged=_artifact_stream(*_CHUNKED, chunk("It rains in Oslo", id="a2", lastChunk=True)),
    clean=_artifact_stream(*_CHUNKED, chunk("Bergen: rain, too", id="a2", lastChunk=True)),
)
def repeats_another(context: RuleContext) -> Iterator[RuleFinding]:
    """The first update of an artifact has exactly the joined text of another artifact, which came
    in two or more updates of this stream with at least 16 bytes.

    A client that shows all artifacts of the task shows the text twice, and stores it twice. The
    agent should send the text once: the chunks, or the whole.
    """
    frame, task = context.frame, context.task
    if task is None or frame.append or frame.redacted or frame.truncated:
        return
    gate_result = context.gate_result
    looks = [gate_result] if isinstance(gate_result, ArtifactChunk) else chunks_of_frame(frame)
    content = add_parts(NO_PARTS, looks[0].pieces) if looks else NO_PARTS
    if content.length < MIN_REPEATED:
        return
    for name, each in task.artifacts.items():
        if (
            each.content == content
            and each.chunks > 1
            and each.is_fully_recorded
            and each.stream == context.record.id
        ):
            told = (
                f"artifact {frame.artifact_id} repeats the text of artifact {name} "
                f"({content.length} bytes in "
            )
            yield RuleFinding(
                summary=f"{told}{_count_updates(each.chunks)})",
                path=_member_path(context, "artifact.parts"),
            )
            return
