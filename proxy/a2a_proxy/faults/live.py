"""Faults on live traffic: the verbs of `words`, and a description of an event or a call in place of
a recorded one."""

import difflib
import re

import msgspec

from a2a_proxy.faults.words import WordScanner, read_fault
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.protocol.operations import JSONRPC_METHODS, OPERATION_BY_NAME, STREAMING_OPERATIONS

WEBHOOK = "webhook"
"""The operation of a delivery to a webhook."""
ANY_OPERATION = "*"
LAST = "last"
LIVE_EXAMPLES = {
    "drop": "drop status 2 of SendStreamingMessage call 1",
    "dup": "dup artifact of *",
    "swap": "swap 2 3 of SendStreamingMessage",
    "cut": "cut last of SendStreamingMessage call 1 @ 50%",
    "stall": "stall 5s before completed of SendStreamingMessage",
    "gen": "gen+2 at 3 of SendStreamingMessage",
    "fail": "fail 503 at SendMessage call 2",
    "reset": "reset at GetTask",
    "slice": "slice 7 of SendStreamingMessage",
    "slow": "slow 200ms every SendStreamingMessage",
}
"""A fault with each verb, in the order of the manual."""

_KINDS = {
    "task": EventKind.TASK,
    "message": EventKind.MESSAGE,
    "status": EventKind.STATUS,
    "artifact": EventKind.ARTIFACT,
}
_STATES = {state.label: state for state in TaskState if state is not TaskState.UNSPECIFIED}
_NUMBER = re.compile(r"[1-9]\d{0,8}")
_ANY_NUMBER = re.compile(r"-?\d+")
_CODE = re.compile(r"[45]\d\d|-[1-9]\d{0,8}")
_OPERATION_NAMES = (*OPERATION_BY_NAME, ANY_OPERATION, WEBHOOK)
_EVENT_WORDS = (*_KINDS, *_STATES, LAST)
STREAM_VERBS = frozenset({"drop", "dup", "swap"})
"""Verbs that need a stream: a call has one answer."""


class EventPattern(msgspec.Struct, frozen=True):
    """Which events of a response are meant: the `number`-th event of the kind and the state."""

    number: int = 1
    kind: EventKind = EventKind.NONE
    """NONE: any event."""
    state: int = 0
    """0: any state."""
    last: bool = False
    """Whether it must end the agent's turn."""


class LiveFault(msgspec.Struct, frozen=True):
    """Something that goes wrong on live traffic on purpose."""

    text: str
    verb: str
    """A verb of `FaultWords`, or `fail`, `reset`, `slice`, `slow`."""
    operation: str
    """The 1.0 name, ANY_OPERATION or WEBHOOK."""
    call: int = 0
    """Number of the call, counted over all connections; 0 for every call."""
    events: tuple[EventPattern, ...] = ()
    amount: float = 0.0
    """As in `FaultWords`; `slice`: bytes; `slow`: ns."""
    code: int = 0
    """`fail`: an HTTP status, a JSON-RPC code (negative), or 0 if `grpc_status` is set."""
    grpc_status: int = -1
    """`fail`: a gRPC status; -1 if `code` is set."""


class _LivePlace(msgspec.Struct, frozen=True):
    events: tuple[EventPattern, ...]
    operation: str
    call: int


def parse_live_fault(text: str) -> LiveFault:
    """Parse a fault such as `drop status 2 of SendStreamingMessage call 1`. Raises FaultError."""
    words = WordScanner(text, LIVE_EXAMPLES)
    read = read_fault(words, _read_place)
    if read is not None:
        place = read.place
        return LiveFault(
            read.text, read.verb, place.operation, place.call, place.events, read.amount
        )
    reader = _READERS.get(words.word)
    if reader is None:
        raise words.make_verb_error()
    fault = reader(words)
    words.expect_end()
    return msgspec.structs.replace(fault, text=words.text)


def _read_place(words: WordScanner, events: int) -> _LivePlace:
    patterns = tuple([_read_event(words) for _ in range(events)])
    if events == 2 and patterns[0] == patterns[1]:
        raise words.make_error(
            "an event cannot be swapped with itself", "name two events: swap 2 3", back=1
        )
    words.expect_word("of")
    operation = _read_operation(words)
    if (
        words.verb in STREAM_VERBS
        and operation in OPERATION_BY_NAME
        and operation not in STREAMING_OPERATIONS
    ):
        raise words.make_error(
            f"{operation} has one answer, not a stream of events",
            f"{words.verb} needs a stream; to lose the answer: cut 1 of {operation}",
            back=1,
        )
    return _LivePlace(patterns, operation, _read_call(words))


def _read_event(words: WordScanner) -> EventPattern:
    word = words.word
    if word.startswith("#"):
        raise words.make_error(
            "live traffic has no recorded places",
            "describe the event: status 2 of SendStreamingMessage",
        )
    if _NUMBER.fullmatch(word):
        return EventPattern(int(words.take_word()))
    if word == LAST:
        words.take_word()
        return EventPattern(last=True)
    if _ANY_NUMBER.fullmatch(word):
        raise words.make_error("events are counted from 1")
    label = word.removeprefix("TASK_STATE_").lower().replace("_", "-")
    kind, state = _KINDS.get(word, EventKind.NONE), _STATES.get(label, TaskState.UNSPECIFIED)
    if not kind and not state:
        near = difflib.get_close_matches(word, _EVENT_WORDS, 1)
        raise words.make_error(
            "expected an event",
            f"did you mean {near[0]}?"
            if near
            else "an event is a number, task, message, status, artifact, a state such as "
            "input-required, or last; " + words.example,
        )
    words.take_word()
    if not _ANY_NUMBER.fullmatch(words.word):
        return EventPattern(1, kind, int(state))
    if not _NUMBER.fullmatch(words.word):
        raise words.make_error("events are counted from 1")
    return EventPattern(int(words.take_word()), kind, int(state))


def _read_operation(words: WordScanner, *, webhook: bool = False) -> str:
    word = words.word
    if word == ANY_OPERATION or word in OPERATION_BY_NAME or (webhook and word == WEBHOOK):
        return words.take_word()
    if word in JSONRPC_METHODS:
        return JSONRPC_METHODS[words.take_word()][0].name
    if word == WEBHOOK:
        raise words.make_error(
            "a delivery to a webhook can only fail", "for example: fail 503 at webhook"
        )
    near = difflib.get_close_matches(word, _OPERATION_NAMES, 1, 0.5)
    raise words.make_error(
        "expected an operation, or * for any", f"did you mean {near[0]}?" if near else ""
    )


def _read_call(words: WordScanner) -> int:
    if _ANY_NUMBER.fullmatch(words.word):
        raise words.make_error(
            'expected "call" before the number', f"for one call: call {words.word}"
        )
    if words.word != "call":
        return 0
    words.take_word()
    if not _NUMBER.fullmatch(words.word):
        raise words.make_error(
            "expected the number of the call, from 1", "for example: call 1; without it every call"
        )
    return int(words.take_word())


def _read_fail(words: WordScanner) -> LiveFault:
    words.take_word()
    word, status = words.word, -1
    if word in GRPC_STATUS_NAMES:
        status = GRPC_STATUS_NAMES.index(word)
    if status <= 0 and not _CODE.fullmatch(word):
        raise words.make_error(
            "expected an HTTP status from 400 to 599, a JSON-RPC code below 0 or a gRPC status "
            "name",
            _suggest_code(word),
        )
    words.take_word()
    words.expect_word("at")
    operation = _read_operation(words, webhook=True)
    if operation == WEBHOOK and not word.isdigit():
        raise words.make_error(
            "a delivery to a webhook fails with an HTTP status",
            "for example: fail 503 at webhook",
            back=3,
        )
    code = 0 if status > 0 else int(word)
    return LiveFault("", "fail", operation, _read_call(words), code=code, grpc_status=status)


def _suggest_code(word: str) -> str:
    """Return a hint about a word that is no code of a failure; empty for none."""
    if word == GRPC_STATUS_NAMES[0]:
        return "OK is no failure; for example: fail UNAVAILABLE at SendMessage"
    if word.isdecimal() and 0 < int(word) < len(GRPC_STATUS_NAMES):
        return f"for the gRPC status {word}: {GRPC_STATUS_NAMES[int(word)]}"
    near = difflib.get_close_matches(word.upper(), GRPC_STATUS_NAMES[1:], 1)
    return f"did you mean {near[0]}?" if near else ""


def _read_reset(words: WordScanner) -> LiveFault:
    words.take_word()
    words.expect_word("at")
    return LiveFault("", "reset", _read_operation(words), _read_call(words))


def _read_slice(words: WordScanner) -> LiveFault:
    words.take_word()
    size = words.take_number("a number of bytes, from 1")
    words.expect_word("of")
    return LiveFault("", "slice", _read_operation(words), _read_call(words), amount=size)


def _read_slow(words: WordScanner) -> LiveFault:
    words.take_word()
    pause = words.take_duration()
    words.expect_word("every")
    return LiveFault("", "slow", _read_operation(words), _read_call(words), amount=pause)


_READERS = {"fail": _read_fail, "reset": _read_reset, "slice": _read_slice, "slow": _read_slow}
