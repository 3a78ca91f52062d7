"""Binding and dialect of a call: as recorded, or as the user requests."""

from __future__ import annotations

import msgspec

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.replay.convert.requests import grpc_path, rpc_method

_FIXED_BINDINGS = (Binding.CARD, Binding.OTHER)
"""Bindings that are not translated, because their requests are the same for all."""
_LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
_DIALECTS_WITHOUT_REST = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.VENDOR})


class CallTarget(msgspec.Struct, frozen=True):
    """How a call is made."""

    binding: Binding
    dialect: Dialect
    operation: str
    is_translated: bool = False
    """Whether binding or dialect differ from the recording."""


class RequestedTarget(msgspec.Struct, frozen=True):
    """The user's choice; None: as recorded."""

    binding: Binding | None = None
    dialect: Dialect | None = None

    def target_of(self, step: PlannedCall) -> CallTarget:
        """Return how this call is made."""
        exchange = step.exchange
        if exchange.binding in _FIXED_BINDINGS or not exchange.operation:
            return CallTarget(exchange.binding, exchange.dialect, exchange.operation)
        binding, dialect = self.binding or exchange.binding, self.dialect or exchange.dialect
        same = binding is exchange.binding and dialect is exchange.dialect
        return CallTarget(binding, dialect, exchange.operation, not same)

    def obstacle_of(self, step: PlannedCall) -> str:
        """Return why a call cannot be made like this; empty if it can."""
        target = self.target_of(step)
        return self._pipe_obstacle(target) or _target_obstacle(step, target)

    def _pipe_obstacle(self, target: CallTarget) -> str:
        """Return why a call that keeps its binding cannot be made, because only one of agent and
        call uses a pipe."""
        if self.binding is Binding.STDIO and target.binding is not Binding.STDIO:
            return "it is an HTTP request, which a stdio agent does not answer"
        if self.binding not in (None, Binding.STDIO) and target.binding is Binding.STDIO:
            return f"it is not an A2A operation, so it cannot be sent over {self.binding}"
        return ""


def _target_obstacle(step: PlannedCall, target: CallTarget) -> str:
    if not target.is_translated:
        return ""
    if target.operation in _LIVE_OPERATIONS and target.binding is not Binding.GRPC:
        return f"live streams are sent over gRPC only, not over {target.binding}"
    if step.exchange.live_payload not in ("", "bidi"):
        return "the messages of this live proposal exist in no other binding or dialect"
    try:
        _operation_name(target)
    except LookupError:
        return f"{target.operation} is not in {target.dialect} over {target.binding}"
    return ""


def _operation_name(target: CallTarget) -> str:
    """Return the name of the operation in the dialect and binding. Raises LookupError if it has
    none."""
    if target.operation not in OPERATION_BY_NAME:
        raise LookupError
    if target.binding is Binding.GRPC:
        if target.dialect in _DIALECTS_WITHOUT_REST:
            raise LookupError
        return grpc_path(target.operation, target.dialect)
    if target.binding is Binding.REST:
        if target.dialect in _DIALECTS_WITHOUT_REST or (
            target.dialect is Dialect.V0_3 and target.operation == "ListTasks"
        ):
            raise LookupError
        return target.operation
    return rpc_method(target.operation, target.dialect)
