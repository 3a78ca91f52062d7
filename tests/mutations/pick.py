"""Select the exchange to change in a recorded conversation, in any version and binding."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from a2a_proto import message_class
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.errors import decode_binary_value
from support_mutations import Ex, Msg, Talk

JSONRPC, REST, GRPC = Binding.JSONRPC, Binding.REST, Binding.GRPC
PLAIN = "data: \0\n\n"


def pick(
    talk: Talk, operation: str, binding: Binding | None = None, number: int = 0, **having: Any
) -> Ex:
    """Return the n-th exchange of an operation on a binding."""
    found = [
        each
        for each in talk.all(operation, **having)
        if binding is None or each.facts.binding is binding
    ]
    return found[number]


def stream(talk: Talk, binding: Binding | None = None) -> Ex:
    """Return a stream of a task from its beginning to its end, with at least six events."""
    return next(
        each
        for each in talk.all("SendStreamingMessage", streams=True)
        if len(each.answers) >= 6 and (binding is None or each.facts.binding is binding)
    )


def refused(talk: Talk, operation: str = "GetTask") -> Ex:
    """Return a call of this operation that was answered with an error about an unknown task."""
    return next(each for each in talk.all(operation) if failed(each))


def failed(exchange: Ex) -> bool:
    """Return whether it was answered with an error."""
    if exchange.grpc:
        return exchange.facts.grpc_status not in (None, 0, -1)
    if exchange.facts.binding is REST:
        return exchange.status >= 400
    return any(isinstance(each.value, dict) and "error" in each.value for each in exchange.answers)


def alone(talk: Talk, operation: str, binding: Binding) -> Ex:
    """Return an exchange whose context occurs in no other one."""

    def named(exchange: Ex) -> str:
        value = exchange.answers[0].value
        inner = value.get("result", value)
        return str(next(each["contextId"] for each in inner.values() if isinstance(each, dict)))

    def speaks(exchange: Ex, context: str) -> bool:
        said = b"".join(each.data for each in (*exchange.requests, *exchange.answers))
        return context.encode() in said

    found = [
        each for each in talk.all(operation) if each.facts.binding is binding and not failed(each)
    ]
    return next(
        each for each in found if sum(speaks(other, named(each)) for other in talk.exchanges) == 1
    )


def change(message: Msg, how: Callable[[Any], object]) -> None:
    """Change the whole payload with its envelope; an event then has one line."""
    value = message.value
    how(value)
    replace(message, value)


def replace(message: Msg, value: Any) -> None:
    """Replace the payload; an event then has one line."""
    message.put(value)
    if message.framing.count("\0") > 1:
        message.framing = PLAIN


def raw(message: Msg, before: bytes, after: bytes) -> None:
    """Replace bytes in one place of the payload."""
    assert message.data.count(before) >= 1
    message.data = message.data.replace(before, after, 1)
    if message.framing.count("\0") > 1:
        message.framing = PLAIN


# --- errors

DETAILS = b"grpc-status-details-bin"


def info(call: Ex, **members: Any) -> None:
    """Change the first detail of an error, its ErrorInfo, on any binding."""
    if call.grpc:
        _write(call, members)
        return

    def into(body: Any) -> None:
        error = body["error"]
        error["data" if "data" in error else "details"][0].update(members)

    change(call.answers[0], into)


def _write(call: Ex, members: dict[str, Any], code: int = -1) -> None:
    for pair in (*call.reply_headers, *call.trailers):
        if pair[0] != DETAILS:
            continue
        status: Any = message_class("rpc", "google.rpc.Status").FromString(
            decode_binary_value(pair[1])
        )
        found: Any = message_class("rpc", "google.rpc.ErrorInfo").FromString(
            status.details[0].value
        )
        for name, value in members.items():
            setattr(found, name, value)
        status.details[0].value = found.SerializeToString()
        status.code = status.code if code < 0 else code
        pair[1] = b64encode(status.SerializeToString())


def refuse(call: Ex, reason: str, *, code: int, http: int, status: str, number: int) -> None:
    """Replace the error with another one, in the form of each binding; `number` is the gRPC
    status."""
    if call.grpc:
        call.set("grpc-status", str(number), reply=True)
        _write(call, {"reason": reason}, number)
        return

    def into(body: Any) -> None:
        if call.facts.binding is JSONRPC:
            body["error"]["code"] = code
        else:
            call.status = http
            body["error"].update(code=http, status=status)

    change(call.answers[0], into)
    info(call, reason=reason)


def say(call: Ex, text: str) -> None:
    """Set another message of an error."""
    if call.grpc:
        call.set("grpc-message", text, reply=True)
    else:
        change(call.answers[0], lambda body: body["error"].update(message=text))


def frame(call: Ex) -> Msg | None:
    """Return the answer with the error: the first one; None for gRPC trailers."""
    return None if call.grpc else call.answers[0]
