"""In which binding and dialect a call is made: as recorded, or in another one that the user has asked for."""

from __future__ import annotations

import msgspec

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.replay.convert.requests import grpc_path, rpc_method

_FIXED = (Binding.CARD, Binding.OTHER)
"""What is the same on all of them."""
_LIVE = frozenset({"SendLiveMessage", "ReconnectToTask"})
_NO_REST = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.VENDOR})


class CallTarget(msgspec.Struct, frozen=True):
    """How a call is made."""

    binding: Binding
    dialect: Dialect
    operation: str
    translated: bool = False
    """Not as recorded."""


class RequestedTarget(msgspec.Struct, frozen=True):
    """What the user has asked for; None: as recorded."""

    binding: Binding | None = None
    dialect: Dialect | None = None

    def of(self, step: PlannedCall) -> CallTarget:
        """How this call is made."""
        exchange = step.exchange
        if exchange.binding in _FIXED or not exchange.operation:
            return CallTarget(exchange.binding, exchange.dialect, exchange.operation)
        binding, dialect = self.binding or exchange.binding, self.dialect or exchange.dialect
        same = binding is exchange.binding and dialect is exchange.dialect
        return CallTarget(binding, dialect, exchange.operation, not same)

    def unfit(self, step: PlannedCall) -> str:
        """Why a call cannot be made so; empty where it can."""
        return _unfit(step, self.of(step))


def _unfit(step: PlannedCall, speech: CallTarget) -> str:
    if not speech.translated:
        return ""
    if speech.operation in _LIVE and speech.binding is not Binding.GRPC:
        return f"live streams go over gRPC, not over {speech.binding}"
    if step.exchange.live_payload not in ("", "bidi"):
        return "the messages of this live proposal are no other binding's or dialect's"
    try:
        _name(speech)
    except LookupError:
        return f"{speech.operation} is not in {speech.dialect} over {speech.binding}"
    return ""


def _name(speech: CallTarget) -> str:
    """What the dialect calls the operation there. Raises LookupError where it has none."""
    if speech.operation not in BY_NAME:
        raise LookupError
    if speech.binding is Binding.GRPC:
        if speech.dialect in _NO_REST:
            raise LookupError
        return grpc_path(speech.operation, speech.dialect)
    if speech.binding is Binding.REST:
        if speech.dialect in _NO_REST or (speech.dialect is Dialect.V0_3 and speech.operation == "ListTasks"):
            raise LookupError
        return speech.operation
    return rpc_method(speech.operation, speech.dialect)
