"""Reading and waiting by generation, numbers that cannot be read, and the same number in two
places."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.breaks_together_stream import spread, streams
from mutations.events import SECOND, read, set_state, swap, wait
from mutations.numbered import ask, asked, give, look, number_of, numbered, waiting
from mutations.objects import alter
from mutations.pick import failed, stream
from support_mutations import Ex, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
JSON = ("sdk-1.x-jsonrpc", "sdk-1.x-rest")
ALL = (*SDK, "js-three-bindings", "demo", "concurrent-grpc")
CHUNK = 3
"""The index of the second chunk; the one before the last is never a part of it."""


def looks(talk: Talk) -> tuple[Ex, Ex, Ex]:
    """The calls that `asked` adds: a plain one, one that asks for what is there, one that waits."""
    task_id = waiting(talk).facts.task_id
    found = [
        each
        for each in talk.all("GetTask")
        if not failed(each) and read(each.answers[0])["id"] == task_id
    ]
    plain, news, held = found
    return plain, news, held


# --- long polls


@mutation(*SDK, prepare=asked)
def news_is_held_back(talk: Talk) -> Iterator[Want]:
    """The client asks for changes after 2, it is at 3, and the answer takes three seconds."""
    _, news, _ = looks(talk)
    news.answers[0].at += 3 * SECOND
    news.answered = news.ended = news.answers[0].at
    yield Want("A2A-GEN-009", news, news.answers[0])


@mutation(*SDK, prepare=asked)
def news_never_comes(talk: Talk) -> Iterator[Want]:
    """The client gives up after a minute."""
    _, news, _ = looks(talk)
    news.answers, news.status, news.finish = [], 0, "leave"
    news.ended += 60 * SECOND
    yield Want("A2A-GEN-009", news)


@mutation(*SDK, prepare=asked)
def an_answer_is_older_than_the_question(talk: Talk) -> Iterator[Want]:
    """The client knows 3, the answer has 2."""
    _, _, held = looks(talk)
    give(held.answers[0], 2)
    yield Want("A2A-GEN-011", held, held.answers[0])


@mutation(*SDK, prepare=asked)
def an_answer_has_no_number(talk: Talk) -> Iterator[Want]:
    """The task had one."""
    plain, _, _ = looks(talk)
    give(plain.answers[0], None)
    yield Want("A2A-GEN-004", plain, plain.answers[0])


@mutation(*SDK, prepare=asked)
def a_change_is_not_counted(talk: Talk) -> Iterator[Want]:
    """The task is at work again, and at 3 still."""
    _, _, held = looks(talk)
    set_state(held.answers[0], "WORKING")
    yield Want("A2A-GEN-008", held, held.answers[0])


# --- clients


def followed(talk: Talk) -> None:
    """Numbers, and a client that asks for changes of a task that it has seen to its end."""
    numbered(talk)
    call = stream(talk)
    task = read(call.answers[0]) | {"status": read(call.answers[-1])["status"]}
    task |= {"generation": str(number_of(call.answers[-1])), "artifacts": []}
    for each in call.answers:
        event = read(each)
        if "artifact" in event:
            _gather(task["artifacts"], event)
    look(talk, task, number_of(call.answers[-1]) - 1)


def _gather(artifacts: list[dict[str, object]], event: dict[str, object]) -> None:
    artifact = event["artifact"]
    assert isinstance(artifact, dict)
    known = next((each for each in artifacts if each["artifactId"] == artifact["artifactId"]), None)
    if known is None:
        artifacts.append(artifact)
    else:
        known["parts"] = [*known["parts"], *artifact["parts"]]  # type: ignore[misc]


@mutation(*SDK, prepare=followed)
def a_client_goes_on_after_a_number_came_twice(talk: Talk) -> Iterator[Want]:
    """Generations are not to be used then."""
    call = stream(talk)
    give(call.answers[CHUNK], number_of(call.answers[CHUNK - 1]))
    asks = talk.exchanges[-1]
    yield Want("A2A-GEN-002", call, call.answers[CHUNK])
    yield Want("A2A-GEN-017", asks, asks.requests[0] if asks.requests else None)


def slow(talk: Talk) -> None:
    """Numbers, and a pause of fifteen seconds in the stream."""
    numbered(talk)
    stream(talk).shift(CHUNK + 1, 15 * SECOND)
    wait(talk, 1)


@mutation(*ALL, prepare=slow)
def a_client_does_not_look_after_a_gap(talk: Talk) -> Iterator[Want]:
    """The stream goes on for fifteen seconds."""
    call = stream(talk)
    del call.answers[CHUNK - 2]
    yield Want("A2A-GEN-001", call, call.answers[CHUNK - 2])
    yield Want("A2A-GEN-018", call)


# --- numbers that cannot be read


@mutation(*JSON, "js-three-bindings", "demo", prepare=numbered)
def a_number_is_a_fraction(talk: Talk) -> Iterator[Want]:
    """4.5."""
    call = stream(talk)
    give(call.answers[CHUNK], "4.5")
    yield Want("A2A-GEN-020", call, call.answers[CHUNK])


@mutation(*JSON, "js-three-bindings", "demo", prepare=numbered)
def a_number_is_below_0(talk: Talk) -> Iterator[Want]:
    """-4."""
    call = stream(talk)
    give(call.answers[CHUNK], -4)
    yield Want("A2A-GEN-020", call, call.answers[CHUNK])


@mutation(*JSON, "js-three-bindings", "demo", prepare=numbered)
def a_number_is_too_large(talk: Talk) -> Iterator[Want]:
    """2^63."""
    call = stream(talk)
    give(call.answers[CHUNK], 2**63)
    yield Want("A2A-GEN-020", call, call.answers[CHUNK])


@mutation(*JSON, "js-three-bindings", "demo", prepare=numbered)
def a_number_is_no_text(talk: Talk) -> Iterator[Want]:
    """A JSON number."""
    call = stream(talk)
    alter(call.answers[CHUNK], lambda event: event.update(generation=int(event["generation"])))
    yield Want("A2A-GEN-020", call, call.answers[CHUNK])


@mutation(*JSON, prepare=asked)
def a_client_asks_for_changes_after_a_word(talk: Talk) -> Iterator[Want]:
    """`latest`."""
    _, news, _ = looks(talk)
    ask(news, waiting(talk).facts.task_id, "latest")
    yield Want("A2A-GEN-020", news, news.requests[0] if news.requests else None)


# --- two streams


def together(talk: Talk) -> None:
    """Numbers on two streams, the second of which tells each chunk after the first."""
    numbered(talk)
    spread(talk)


@mutation(*SDK, prepare=together)
def a_chunk_says_something_else_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """Under the same number."""
    _, subscription = streams(talk)
    other = subscription.answers[-3]
    alter(other, lambda event: event["artifact"].update(parts=[{"text": "something else; "}]))
    yield Want("A2A-GEN-021", subscription, other)


@mutation(*SDK, prepare=together)
def a_chunk_says_something_else_on_the_first_stream(talk: Talk) -> Iterator[Want]:
    """Under the same number: it is told where it is seen."""
    first, subscription = streams(talk)
    alter(
        first.answers[CHUNK],
        lambda event: event["artifact"].update(parts=[{"text": "something else; "}]),
    )
    yield Want("A2A-GEN-021", subscription, subscription.answers[-3])


@mutation(*SDK, prepare=together)
def two_chunks_have_each_others_numbers_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """Each says something else than on the first stream, and the numbers are out of order."""
    _, subscription = streams(talk)
    one, two = subscription.answers[-4], subscription.answers[-3]
    first, second = number_of(one), number_of(two)
    give(one, second)
    give(two, first)
    yield Want("A2A-GEN-001", subscription, one)
    yield Want("A2A-GEN-003", subscription, two)
    yield Want("A2A-GEN-021", subscription, two)
    yield Want("A2A-GEN-021", streams(talk)[0], streams(talk)[0].answers[CHUNK])


@mutation(*SDK, prepare=together)
def a_chunk_is_missing_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """It came on the first stream: the gap says so."""
    _, subscription = streams(talk)
    del subscription.answers[-3]
    yield Want("A2A-GEN-001", subscription, subscription.answers[-2])
    yield Want("A2A-STREAM-014", subscription)


@mutation(*SDK, prepare=together)
def a_chunk_is_missing_on_the_first_stream(talk: Talk) -> Iterator[Want]:
    """It comes on the subscription."""
    first, _ = streams(talk)
    del first.answers[CHUNK]
    yield Want("A2A-GEN-001", first, first.answers[CHUNK])
    yield Want("A2A-STREAM-014", first)


@mutation(*SDK, prepare=together)
def chunks_change_places_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """The stream on which numbers go down is the wrong one."""
    _, subscription = streams(talk)
    swap(subscription, -3, -2)
    yield Want("A2A-GEN-001", subscription, subscription.answers[-3])
    yield Want("A2A-GEN-003", subscription, subscription.answers[-2])
    yield Want("A2A-STREAM-013", subscription, subscription.answers[-2])


@mutation(*SDK, prepare=numbered)
def the_snapshot_of_a_subscription_is_old(talk: Talk) -> Iterator[Want]:
    """1 and SUBMITTED: 2 had passed before the request, and does not come again."""
    _, subscription = streams(talk)
    give(subscription.answers[0], 1)
    set_state(subscription.answers[0], "SUBMITTED")
    yield Want("A2A-STREAM-019", subscription, subscription.answers[0])
    yield Want("A2A-GEN-001", subscription, subscription.answers[1])
