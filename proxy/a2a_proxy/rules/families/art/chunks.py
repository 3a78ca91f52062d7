"""Artifacts in chunks: one stream of updates after the other (A2A 1.0 section 4.2.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Event, rpc_stream
from a2a_proxy.rules.examples.objects import artifact, chunk, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.naming import holder
from a2a_proxy.rules.facts.partial_decode import artifacts_of
from a2a_proxy.rules.state.state_sequence import KnownArtifact


def _stream(*events: Event) -> Script:
    return rpc_stream("SendStreamingMessage", send(), snapshot(), *events, status("COMPLETED", second=1))


_WHOLE = _stream(chunk("a"), chunk("b", append=True, lastChunk=True))


def _place(see: RuleContext, member: str) -> str:
    return f"{see.root}{holder(see.frame, see.v1, see.operation)}{member}"


def _known(see: RuleContext) -> KnownArtifact | None:
    return see.task.artifacts.get(see.frame.artifact_id) if see.task is not None else None


@rule(
    "A2A-ART-001",
    "Append to an unknown artifact",
    Severity.ERROR,
    section="1.0 4.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.ODD_CHUNK,
    flagged=_stream(chunk("a", append=True, lastChunk=True)),
    clean=_WHOLE,
)
def unknown(see: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update has `append: true`, and no update or snapshot of its task had this artifact before.
    Information where the stream is not the one that created the task: then the beginning may not have been seen. Not
    judged where something came before on the stream that cannot be read, or does not say of which artifact it is.

    There is nothing to append to: clients drop the chunk, or show an artifact that lacks its beginning.
    """
    see.needs_payload()
    frame, task = see.frame, see.task
    if not frame.append or see.is_(FrameFlag.KNOWN_ARTIFACT) or task is None or see.track.unread:
        return
    seen = task.born == see.track.id
    told = f"`append` is true, and artifact {frame.artifact_id} of task {frame.task_id} was not seen before"
    severity = None if seen else Severity.INFO
    yield RuleFinding(summary=told, path=_place(see, "append"), value="true", severity=severity, sure=seen)


def _updates(count: int) -> str:
    return f"{count} update" if count == 1 else f"{count} updates"


@rule(
    "A2A-ART-002",
    "Append after the last chunk",
    Severity.WARNING,
    section="1.0 4.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.ODD_CHUNK,
    flagged=_stream(chunk("a", lastChunk=True), chunk("b", append=True)),
    clean=_WHOLE,
)
def after_last(see: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update has `append: true` after one of the same artifact had `lastChunk: true`, and none has replaced
    the artifact since.

    A client that takes the artifact for complete at its last chunk has worked with a part of it.
    """
    found = _known(see)
    if see.frame.append and found is not None and found.done:
        told = f"artifact {see.frame.artifact_id} grows after its `lastChunk`"
        yield RuleFinding(summary=f"{told}, after {_updates(found.chunks)}", path=_place(see, "append"), value="true")


@rule(
    "A2A-ART-003",
    "A chunked artifact was never finished",
    Severity.INFO,
    section="1.0 4.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.TERMINAL,
    flagged=_stream(chunk("a"), chunk("b", append=True)),
    clean=_WHOLE,
)
def unfinished(see: RuleContext) -> Iterator[RuleFinding]:
    """A stream tells that its task is over, and an artifact that it has shown in several chunks had no
    `lastChunk: true`. Told once for each artifact, at most ten.

    A client that waits for the last chunk to show or store the artifact never does.
    """
    task = see.task
    if task is None or see.shown_before == see.frame.state:
        return
    open_ones = [
        (name, each)
        for name, each in task.artifacts.items()
        if each.stream == see.track.id and each.appends and each.chunks > 1 and not each.done
    ]
    for name, each in open_ones[:10]:
        told = f"task {task.task_id} is over, and artifact {name} had no `lastChunk` in {_updates(each.chunks)}"
        yield RuleFinding(summary=told, value=name)


@rule(
    "A2A-ART-004",
    "An artifact was replaced",
    Severity.INFO,
    section="1.0 4.2.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.ODD_CHUNK,
    flagged=_stream(chunk("a"), chunk("b")),
    clean=_WHOLE,
)
def replaced(see: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update without `append` has the id of an artifact that the same stream has shown before. It replaces
    it, which is allowed. The same octets again are A2A-STREAM-020.

    Often `append: true` was forgotten: then the client keeps the last chunk only.
    """
    found = _known(see)
    if not see.frame.append and found is not None and not see.is_(FrameFlag.REPEAT):
        before = _updates(found.chunks)
        told = f"artifact {see.frame.artifact_id} replaces what came in {before} before (no `append`)"
        yield RuleFinding(summary=told, path=_place(see, "artifact.artifactId"), value=see.frame.artifact_id)


@rule(
    "A2A-ART-007",
    "An artifact is described otherwise than before",
    Severity.INFO,
    section="1.0 4.1.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.DRIFT,
    flagged=_stream(
        chunk("a"),
        {
            "artifactUpdate": chunk("b", append=True, lastChunk=True)["artifactUpdate"]
            | {"artifact": artifact("b", name="other")}
        },
    ),
    clean=_WHOLE,
)
def drifts(see: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update has another name, another description or another media type of its first part than the updates
    of this artifact before. What is left out counts as unchanged.

    It is not said which of them a client shows, and a change of the media type breaks what was put together.
    """
    found, looks = _known(see), artifacts_of(see.frame)
    if found is None or not looks:
        return
    look = looks[0]
    changes = [
        f'{what} "{before[:60]}" became "{now[:60]}"'
        for what, before, now in (
            ("name", found.name, look.name),
            ("media type", found.media_type, look.media_type),
        )
        if before and now and before != now
    ]
    if found.description and look.description and found.description != look.description:
        changes.append("the description is another one")
    if changes:
        path = _place(see, "artifact.name" if look.name != found.name else "artifact")
        yield RuleFinding(summary=f"artifact {look.artifact_id}: {', '.join(changes)}", path=path, value=look.name)
