"""Rules about artifacts sent in chunks, as successive updates of one stream (A2A 1.0 section
4.2.2)."""

from collections.abc import Iterator
from zlib import crc32

from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Event, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.compared_values import NO_PARTS, PartsSummary, add_parts
from a2a_proxy.rules.facts.naming import object_prefix
from a2a_proxy.rules.state.records import KnownArtifact
from a2a_proxy.rules.state.state_sequence import MIN_REPEATED


def _artifact_stream(*events: Event) -> Script:
    return rpc_stream(
        "SendStreamingMessage", send(), snapshot(), *events, status("COMPLETED", second=1)
    )


_MIN_CHARACTERS = 5
"""Different bytes from which a repeated text is not taken for a line that separates others."""
_MAX_REPORTED = 100
"""Maximum number of artifacts of one stream that are reported as repeated."""
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
    trigger_flags=FrameFlag.ODD_CHUNK | FrameFlag.TERMINAL,
    flagged=_artifact_stream(
        chunk("It rains "), chunk("in Oslo ", append=True), chunk("today", lastChunk=True)
    ),
    clean=_artifact_stream(
        chunk("It rains "), chunk("in Oslo ", append=True), chunk("It rains in Oslo today")
    ),
)
def artifact_replaced(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update without `append` has the id of an artifact that this stream has already
    sent, so it replaces that artifact. This is allowed, and reported as information; as a warning
    (low confidence) if the text that remains at its `lastChunk`, or at the end of the task, is at
    least a fifth less than the chunks that were appended before. Not reported if the update begins
    with all earlier text. An exact repetition of the bytes is reported as A2A-STREAM-020 instead.

    Often the agent forgot `append: true`: the client then keeps only the last chunk. The agent must
    set `append` on a chunk that continues the artifact.
    """
    if context.frame.event is not EventKind.ARTIFACT:
        yield from _check_replaced(context)
        return
    found = _known_artifact(context)
    if context.frame.append or found is None or context.has_flag(FrameFlag.REPEAT):
        return
    name, before = context.frame.artifact_id, _count_updates(found.chunks)
    text = _read_new_text(context, found)
    if text is not None and crc32(text[: found.length]) == found.digest:
        return
    told = f"artifact {name} replaces the content of {before} (no `append`)"
    is_less = text is not None and _is_less(len(text), found.length)
    if is_less and text is not None:
        told += f": {found.length} bytes of text by {len(text)}"
    is_lost = is_less and context.frame.last_chunk and found.appends > 0
    if is_lost:
        told += f", and no more follow; {_LOST_TEXT}"
        _note_replaced(context, name)
    yield RuleFinding(
        summary=told,
        path=_member_path(context, "artifact.artifactId"),
        value=name,
        severity=None if is_lost else Severity.INFO,
        is_sure=not is_lost,
    )


_LOST_TEXT = "if they continue the text, the client loses the earlier text"


def _read_new_text(context: RuleContext, before: KnownArtifact) -> bytes | None:
    """Return the text that replaces an artifact of text; None if either has other content, or is
    not known completely."""
    frame = context.frame
    if not before.is_fully_recorded or before.byte_count or before.other_parts:
        return None
    looks = chunks_of_frame(frame) if not (frame.truncated or frame.redacted) else []
    texts = looks[0].texts if looks else []
    return b"".join(texts) if looks and len(texts) == len(looks[0].pieces) else None


def _is_less(length: int, before: int) -> bool:
    """Whether a text is clearly shorter than the one before it. The whole text again, without white
    space at its end, is not."""
    return before > 0 and length * 5 <= before * 4


def _note_replaced(context: RuleContext, name: str) -> bool:
    """Remember that the loss of an artifact's text is reported; return whether it was before."""
    reported: list[str] = context.record.writable_notes().setdefault("replaced artifacts", [])
    is_known = name in reported
    if not is_known:
        reported.append(name)
        del reported[:-_MAX_REPORTED]
    return is_known


def _check_replaced(context: RuleContext) -> Iterator[RuleFinding]:
    """Report at the end of the task the artifacts that lost text and did not get it back."""
    task = context.task
    if task is None or context.stream_state_before == context.frame.state:
        return
    is_task = context.frame.event is EventKind.TASK
    restored = {each.artifact_id for each in chunks_of_frame(context.frame)} if is_task else ()
    for name, each in task.artifacts.items():
        if name in restored:
            continue
        is_text = each.is_fully_recorded and not (each.byte_count or each.other_parts)
        is_less = is_text and _is_less(each.length, each.longest)
        if each.stream == context.record.id and is_less and not _note_replaced(context, name):
            yield RuleFinding(
                summary=f"artifact {name} had {each.longest} bytes of text in appended chunks, "
                f"and has {each.length} at the end, because an update without `append` replaced "
                f"it; {_LOST_TEXT}",
                value=name,
                is_sure=False,
            )


@rule(
    "A2A-ART-009",
    "Earlier text of an artifact appended again",
    Severity.WARNING,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.AGAIN,
    flagged=_artifact_stream(
        chunk("It rains "),
        chunk("in Oslo", append=True),
        chunk("It rains in Oslo", append=True, lastChunk=True),
    ),
    clean=_artifact_stream(*_CHUNKED),
)
def appended_again(context: RuleContext) -> Iterator[RuleFinding]:
    """An update with `append: true` has as its text exactly the joined text of all earlier updates
    of the artifact, at least two on this stream, with at least 16 bytes; or, for the third time or
    as the last chunk, the whole text of the update before with more behind it; or it completes the
    text that the Task at the beginning of the stream had. Reported as information (low confidence)
    if the last chunk repeats the only one before it. The same text without `append` replaces the
    artifact (A2A-ART-004).

    The client appends it, and shows and stores the text twice. The agent must send only new text
    with `append: true`, or leave `append` out of the update with the full text.
    """
    found, frame = _known_artifact(context), context.frame
    if found is None or not frame.append or frame.redacted or frame.truncated:
        return
    gate_result = context.gate_result
    looks = [gate_result] if isinstance(gate_result, ArtifactChunk) else chunks_of_frame(frame)
    if not looks or context.has_flag(FrameFlag.REPEAT):
        return
    told, is_sure = _describe_repetition(context, found, looks[0])
    if told:
        yield RuleFinding(
            summary=told,
            path=_member_path(context, "append"),
            value="true",
            severity=None if is_sure else Severity.INFO,
            is_sure=is_sure,
        )


def _describe_repetition(
    context: RuleContext, found: KnownArtifact, update: ArtifactChunk
) -> tuple[str, bool]:
    """Return what an appended update repeats, and whether chance is ruled out; empty if it repeats
    nothing or was reported before."""
    name, record = context.frame.artifact_id, context.record
    text = b"".join(update.texts)
    rest, before = found.shown_length - found.again_length, found.last_length
    is_varied = len(set(text)) >= _MIN_CHARACTERS
    if found.stream == record.id and len(text) >= MIN_REPEATED and is_varied:
        if add_parts(NO_PARTS, update.pieces) == found.content:
            told = f"artifact {name} had {found.length} bytes in {_count_updates(found.chunks)}"
            return f"{told}; this one appends the same text again", found.chunks > 1
        is_grown = MIN_REPEATED <= before < len(text) and crc32(text[:before]) == found.last_digest
        reported: list[str] = (record.notes or {}).get("grown artifacts", [])
        if is_grown and name not in reported:
            record.writable_notes()["grown artifacts"] = [*reported, name][-_MAX_REPORTED:]
            told = f"the update appends the text of the one before it ({before} bytes) again"
            return f"{told} to artifact {name}, with {len(text) - before} bytes more", True
    if 0 < rest <= len(text) and crc32(text[:rest], found.again_digest) == found.shown_digest:
        told = f"the Task at the beginning of this stream had {found.shown_length} bytes of text"
        return f"{told} of artifact {name}; the updates append the same text again", True
    return "", False


@rule(
    "A2A-ART-010",
    "Text sent again as another artifact",
    Severity.INFO,
    section="1.0 4.2.2; 0.3 7.2.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FURTHER_ARTIFACT | FrameFlag.TERMINAL,
    flagged=_artifact_stream(*_CHUNKED, chunk("It rains in Oslo", id="a2", lastChunk=True)),
    clean=_artifact_stream(*_CHUNKED, chunk("Bergen: rain, too", id="a2", lastChunk=True)),
)
def repeats_another(context: RuleContext) -> Iterator[RuleFinding]:
    """The first update of an artifact has exactly the text of another artifact, which came in
    updates of this stream with at least 16 bytes; or the joined text of a further artifact has it
    when the task ends; or two artifacts of a task that ends outside of a stream have it.

    A client that shows all artifacts of the task shows the text twice, and stores it twice. The
    agent should send the text once: the chunks, or the whole.
    """
    frame, task = context.frame, context.task
    if task is None or frame.append or frame.redacted or frame.truncated:
        return
    if frame.event is EventKind.ARTIFACT:
        gate_result = context.gate_result
        looks = [gate_result] if isinstance(gate_result, ArtifactChunk) else chunks_of_frame(frame)
        later = {each.artifact_id: add_parts(NO_PARTS, each.pieces) for each in looks}
        length = next((each.length for each in later.values()), 0)
        if length < MIN_REPEATED:
            return
        sent = _sent_texts(context, length)
    elif context.record.is_streaming:
        if context.stream_state_before == frame.state:
            return
        sent = _sent_texts(context)
        later = {name: each for name, each in sent.items() if task.artifacts[name].chunks > 1}
    else:
        looks = chunks_of_frame(frame) if context.has_flag(FrameFlag.CHANGED) else []
        sent = later = {each.artifact_id: add_parts(NO_PARTS, each.pieces) for each in looks}
    first: dict[PartsSummary, str] = {}
    for name, content in (sent | later).items():
        other = first.setdefault(content, name)
        if other == name or name not in later or content.length < MIN_REPEATED:
            continue
        known = task.artifacts.get(other)
        count = f" in {_count_updates(known.chunks)}" if known is not None and known.chunks else ""
        yield RuleFinding(
            summary=f"artifact {name} repeats the text of artifact {other} "
            f"({content.length} bytes{count})",
            path=_member_path(context, "artifact.parts")
            if frame.event is EventKind.ARTIFACT
            else "",
            value=name,
        )
        return


def _sent_texts(context: RuleContext, length: int = 0) -> dict[str, PartsSummary]:
    """Return the content of the artifacts that this stream has sent completely until now; only of
    those with a text of this length, if one is given: a task may have very many."""
    task = context.task
    return {
        name: each.content
        for name, each in (task.artifacts.items() if task is not None else ())
        if length in (0, each.length)
        and each.chunks
        and each.is_fully_recorded
        and each.stream == context.record.id
    }
