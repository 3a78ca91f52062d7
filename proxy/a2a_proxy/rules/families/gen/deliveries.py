"""Rule about the generations of webhook deliveries (A2A 1.1 draft section 3.2.7)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import WEBHOOK, Dialects, EvidenceScope
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import deliver, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.families.gen.words import TRACKED, format_generations, generation_path
from a2a_proxy.rules.state.push_deliveries import note_delivery, owner_task, sent_events

_LATE_WAIT = 10
"""Seconds within which a delivery that another one has overtaken is expected."""
_MAX_LISTED = 64
"""Maximum number of generations between two deliveries that are examined."""
_MIN_LAG = 2
"""Number of generations by which a delivery is behind; one is usual, because the streams continue
meanwhile."""
_STREAM = rpc_stream(
    "SendStreamingMessage",
    send(),
    snapshot(generation="1"),
    status("WORKING", generation="2"),
    status("WORKING", second=1, generation="3"),
    status("COMPLETED", second=2, generation="4"),
    version="1.1",
)


@rule(
    "A2A-GEN-022",
    "Deliveries are behind the streams",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 4.3.3; 1.1 draft 3.2.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=WEBHOOK,
    trigger_flags=TRACKED,
    draft=True,
    due=lambda see: _check_delivered(see),
    flagged=_STREAM + deliver(status("WORKING", generation="2")),
    clean=_STREAM + deliver(status("COMPLETED", second=2, generation="4")),
)
def behind(context: RuleContext) -> Iterator[RuleFinding]:
    """A delivery has a generation at least two below one that a stream or an answer has shown, or
    the generations between two deliveries were events on a stream and are not delivered within 10
    s. Reported once until the deliveries catch up.

    Deliveries may be late and need not cover every event. A receiver that compares generations must
    accept both; it should read the task if it needs every change.
    """
    number = context.frame.generation
    noted = note_delivery(context)
    delivery, sent = noted.delivery, noted.sent
    task = owner_task(context.session, delivery.agent, delivery.task_id)
    if number <= 0 or task is None or noted.earlier:
        return
    is_behind = task.generation - number >= _MIN_LAG
    if is_behind and not sent["is_behind"]:
        yield RuleFinding(
            summary=f"generation {number} is delivered after generation "
            f"{task.generation} was shown",
            path=generation_path(context),
            value=str(number),
        )
    sent["is_behind"] = is_behind
    last = noted.newest["generation"] if noted.newest is not None else 0
    if last and last + 1 < number:
        context.schedule_due(_LATE_WAIT, f"{last + 1} {number - 1} {delivery.url}")


def _check_delivered(context: RuleContext) -> Iterator[RuleFinding]:
    first, final, url = context.due_note.split(" ", 2)
    task_id = context.task.task_id if context.task is not None else ""
    sent = sent_events(context.session, task_id, url)
    task = owner_task(context.session, sent["agent"], task_id) if sent is not None else None
    if task is None or task.numbers is None or sent is None:
        return
    known = range(int(first), min(int(final), int(first) + _MAX_LISTED) + 1)
    missing = [
        each for each in known if each in task.numbers.events and each not in sent["generations"]
    ]
    if missing:
        told = format_generations(missing[0], missing[-1])
        was = "an event" if len(missing) == 1 else "events"
        yield RuleFinding(
            summary=f"{told}: {was} on a stream, but not delivered", seq=context.due_seq
        )
