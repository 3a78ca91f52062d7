"""The faults of one run: which calls and events they concern, and how often each has happened."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from a2a_proxy.faults.live import ANY_OPERATION, STREAM_VERBS, WEBHOOK, EventPattern, LiveFault
from a2a_proxy.model.values import FAULT_MARK, Binding, EventKind
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS


class EventFacts(msgspec.Struct, frozen=True):
    """The facts of one event of an agent that faults ask for."""

    kind: EventKind = EventKind.NONE
    state: int = 0
    ends_turn: bool = False
    """Whether the agent's turn ends with it: a message, a terminal or interrupted state, or
    `final: true`."""


class CallFault(msgspec.Struct, eq=False):
    """A fault that concerns a call, and the state of its search for events."""

    fault: LiveFault
    index: int
    """Its place in the plan."""
    seen: list[int]
    """For each pattern, the number of events so far that have its kind and state."""
    found: list[bool]
    """For each pattern, whether its event has come."""


class MissedFault(msgspec.Struct, frozen=True):
    """A fault that has not happened."""

    fault: LiveFault
    calls: int
    """The number of calls that it could concern."""
    reason: str


class CallFaults:
    """The faults of one call."""

    def __init__(self, plan: FaultPlan, faults: list[CallFault]) -> None:
        self._plan = plan
        self._faults = faults
        first = next((each for each in faults if each.fault.verb in ("fail", "reset")), None)
        self.refusal = None if first is None else first.fault
        """The fault that ends the call before it reaches the agent; None if the request is sent
        on."""
        self._refusal = first
        self.slice_size = next(
            (int(each.fault.amount) for each in faults if each.fault.verb == "slice"), 0
        )
        """Bytes of a piece of the response; 0 if it is not cut into pieces."""
        self.pause = sum(each.fault.amount for each in faults if each.fault.verb == "slow") / 1e9
        """Seconds by which each event is delayed."""

    def count_refusal(self) -> None:
        """Count the fault that ended the call."""
        if self._refusal is not None:
            self._plan.happened[self._refusal.index] += 1

    def count_response(self) -> list[str]:
        """Count the faults that change the whole response, and return their texts. Called at its
        first event."""
        whole = [each for each in self._faults if each.fault.verb in ("slice", "slow")]
        for each in whole:
            self._plan.happened[each.index] += 1
        return [each.fault.text for each in whole]

    def match_event(self, facts: EventFacts) -> list[LiveFault]:
        """Return the faults that name this event. Called once for each event, in order."""
        matches = []
        for each in self._faults:
            for place, pattern in enumerate(each.fault.events):
                if not each.found[place] and _fits(pattern, facts):
                    each.seen[place] += 1
                    if each.seen[place] == pattern.number:
                        each.found[place] = True
                        matches.append(each.fault)
        return matches

    def count_event(self, fault: LiveFault) -> None:
        """Count a fault that changed an event."""
        self._plan.happened[next(each.index for each in self._faults if each.fault is fault)] += 1


class FaultPlan:
    """The faults of a run, shared by all its connections. Calls are counted in the order in which
    requests arrive."""

    def __init__(self, faults: Sequence[LiveFault]) -> None:
        self.faults = tuple(faults)
        self.happened = [0] * len(self.faults)
        """How often each fault has happened."""
        self._calls = [0] * len(self.faults)

    @property
    def missed(self) -> tuple[MissedFault, ...]:
        """The faults that have not happened."""
        counts = zip(self.faults, self.happened, self._calls, strict=True)
        return tuple(
            MissedFault(fault, calls, _explain_miss(fault, calls))
            for fault, count, calls in counts
            if not count
        )

    def open_call(self, operation: str, binding: Binding) -> CallFaults | None:
        """Count a call and return its faults, or None if no fault concerns it."""
        found = []
        for index, fault in enumerate(self.faults):
            if _concerns_call(fault, operation, binding):
                self._calls[index] += 1
                if fault.call in (0, self._calls[index]):
                    patterns = len(fault.events)
                    found.append(CallFault(fault, index, [0] * patterns, [False] * patterns))
        return CallFaults(self, found) if found else None


def _concerns_call(fault: LiveFault, operation: str, binding: Binding) -> bool:
    if fault.operation not in (operation, ANY_OPERATION):
        return False
    if operation == WEBHOOK:
        return fault.operation == WEBHOOK
    if fault.verb in STREAM_VERBS and operation not in STREAMING_OPERATIONS:
        return False
    if fault.grpc_status >= 0:
        return binding is Binding.GRPC
    return binding is Binding.JSONRPC or fault.code >= 0


def _explain_miss(fault: LiveFault, calls: int) -> str:
    """Return why a fault has not happened, of `calls` calls that it could concern."""
    stream = "streaming " if fault.verb in STREAM_VERBS and fault.operation == ANY_OPERATION else ""
    binding = "gRPC " if fault.grpc_status >= 0 else "JSON-RPC " if fault.code < 0 else ""
    of = "" if fault.operation == ANY_OPERATION else f" of {fault.operation}"
    one, many = f"{stream}{binding}call{of}", f"{stream}{binding}calls{of}"
    if fault.operation == WEBHOOK:
        one, many = "delivery to a webhook", "deliveries to webhooks"
    if not calls:
        return f"no {one} came"
    if calls < fault.call:
        return f"only {calls} {one if calls == 1 else many} came"
    if fault.verb in ("fail", "reset"):
        return "another fault ended the call first"
    return "no event fits" if fault.events else "no response had an event"


def _fits(pattern: EventPattern, facts: EventFacts) -> bool:
    return (
        (not pattern.kind or pattern.kind is facts.kind)
        and (not pattern.state or pattern.state == facts.state)
        and (facts.ends_turn or not pattern.last)
    )


def describe_mark(what: str, text: str) -> str:
    """Return the note of a frame: `what` happened to it, by the fault with this text."""
    return what + FAULT_MARK + text
