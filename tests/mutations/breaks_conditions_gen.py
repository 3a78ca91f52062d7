"""Sends with `ifGenerationMatch`: conditions that are ignored, refused wrongly, or refused with the
wrong error."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.events import wait
from mutations.numbered import answered, condition, conditional, give, number_of, numbered, waiting
from mutations.pick import change, frame
from mutations.pick import refuse as as_error
from mutations.refuse import refuse
from support_mutations import Ex, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
HTTP = ("sdk-1.x-rest",)
MISMATCH = "TASK_GENERATION_MISMATCH"


def refusal(talk: Talk) -> Ex:
    """Return the message of `conditional` that must be refused."""
    return max(talk.exchanges, key=lambda each: each.started)


@mutation(*SDK, prepare=conditional)
def a_stale_condition_is_accepted(talk: Talk) -> Iterator[Want]:
    """The task is at 3, the condition is 2."""
    before, call = answered(talk)
    condition(call, number_of(before.answers[0]) - 1)
    yield Want("A2A-GEN-012", call, call.answers[0])


@mutation(*SDK, prepare=conditional)
def a_condition_that_holds_is_refused(talk: Talk) -> Iterator[Want]:
    """The task is at 3, and so is the condition."""
    call = refusal(talk)
    condition(call, number_of(waiting(talk).answers[0]))
    wait(talk, 5)
    yield Want("A2A-GEN-013", call, frame(call))


@mutation(*SDK, prepare=conditional)
def the_condition_of_a_new_task_is_refused(talk: Talk) -> Iterator[Want]:
    """There is nothing that it could match."""
    call = talk.first("SendMessage")
    lookups = [
        each
        for each in talk.exchanges
        if each.facts.task_id == call.facts.task_id and each is not call
    ]
    talk.exchanges = [each for each in talk.exchanges if each not in lookups]
    said = refuse(call, MISMATCH, "no such generation")
    yield Want("A2A-GEN-014", call, said)


@mutation(*SDK, prepare=conditional)
def a_message_without_condition_is_refused_for_it(talk: Talk) -> Iterator[Want]:
    """The client has set none."""
    call = refusal(talk)
    condition(call, None)
    yield Want("A2A-GEN-015", call, frame(call))


@mutation(*SDK, prepare=numbered)
def a_lookup_is_refused_for_a_condition(talk: Talk) -> Iterator[Want]:
    """GetTask has no such thing."""
    call = talk.first("GetTask")
    said = refuse(call, MISMATCH, "the task has changed")
    yield Want("A2A-GEN-015", call, said)


@mutation(*SDK, prepare=conditional)
def the_mismatch_is_a_failed_precondition(talk: Talk) -> Iterator[Want]:
    """-32004, 400, FAILED_PRECONDITION."""
    call = refusal(talk)
    as_error(call, MISMATCH, code=-32004, http=400, status="FAILED_PRECONDITION", number=9)
    yield Want("A2A-GEN-016", call, frame(call))


@mutation(*SDK, prepare=conditional)
def the_mismatch_is_an_invalid_parameter(talk: Talk) -> Iterator[Want]:
    """-32602, 400, INVALID_ARGUMENT."""
    call = refusal(talk)
    as_error(call, MISMATCH, code=-32602, http=400, status="INVALID_ARGUMENT", number=3)
    yield Want("A2A-GEN-016", call, frame(call))


@mutation(*HTTP, prepare=conditional)
def the_mismatch_is_412(talk: Talk) -> Iterator[Want]:
    """As an older text of the draft had it."""
    call = refusal(talk)
    as_error(call, MISMATCH, code=0, http=412, status="FAILED_PRECONDITION", number=0)
    yield Want("A2A-GEN-016", call, frame(call))


@mutation("sdk-1.x-rest", "sdk-1.x-grpc", prepare=conditional)
def the_mismatch_has_no_reason(talk: Talk) -> Iterator[Want]:
    """409 and ABORTED may be any other conflict."""
    call = refusal(talk)
    if call.grpc:
        call.set("grpc-status-details-bin", None, reply=True)
        yield Want("A2A-GRPC-012", call)
    else:
        yield Want("A2A-ERR-003", call, call.answers[0])
        change(call.answers[0], lambda body: body["error"].pop("details"))
    yield Want("A2A-GEN-016", call, frame(call))


@mutation(*SDK)
def an_agent_without_generations_takes_a_condition(talk: Talk) -> Iterator[Want]:
    """The client believes itself protected."""
    _, call = answered(talk)
    condition(call, 3)
    yield Want("A2A-GEN-019", call, call.answers[0])


@mutation(*SDK, prepare=conditional)
def the_answer_to_a_condition_has_no_number(talk: Talk) -> Iterator[Want]:
    """The task had one."""
    _, call = answered(talk)
    give(call.answers[0], None)
    yield Want("A2A-GEN-004", call, call.answers[0])


@mutation(*SDK, prepare=numbered)
def an_answer_is_not_counted(talk: Talk) -> Iterator[Want]:
    """INPUT_REQUIRED at 3, COMPLETED at 3."""
    before, call = answered(talk)
    give(call.answers[0], number_of(before.answers[0]))
    yield Want("A2A-GEN-008", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", prepare=conditional)
def a_condition_is_a_fraction(talk: Talk) -> Iterator[Want]:
    """2.5."""
    call = refusal(talk)
    condition(call, "2.5")
    yield Want("A2A-GEN-020", call, call.requests[0])
