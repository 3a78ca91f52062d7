"""Objects inside recorded payloads, in any binding and version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from mutations.pick import change, pick
from support_mutations import Ex, Msg, Talk

OLD_JSON = ("sdk-0.3-jsonrpc", "dialect-0.2")
"""0.2 and 0.3 over JSON-RPC, where objects name their type in `kind`."""
OLD_PROTO = ("sdk-0.3-rest", "sdk-0.3-grpc")
V1_TEXT = ("sdk-1.x-jsonrpc", "sdk-1.x-rest")
V1 = (*V1_TEXT, "sdk-1.x-grpc")
SDK = (*V1, *OLD_JSON, *OLD_PROTO)
"""The same conversation: one sample for each version and binding."""

_WRAPPERS = ("task", "statusUpdate", "artifactUpdate", "message", "msg")


def held(payload: Any) -> Any:
    """Return the Task, update, Message or parameters in a payload; changing it changes the
    payload."""
    if isinstance(payload, dict) and "jsonrpc" in payload:
        payload = payload["params"] if "params" in payload else payload["result"]
    if isinstance(payload, dict) and len(payload) == 1:
        name = next(iter(payload))
        return payload[name] if name in _WRAPPERS else payload
    return payload


def alter(message: Msg, how: Callable[[Any], object]) -> None:
    """Change the object that a payload holds."""
    change(message, lambda payload: how(held(payload)))


def member(message: Msg, name: str) -> Any:
    """Return a member of the object in a payload."""
    return held(message.value)[name]


def said(request: Msg) -> Any:
    """Return the message that a client sends."""
    params = held(request.value)
    return params.get("message", params)


def resay(request: Msg, how: Callable[[Any], object]) -> None:
    """Change the message that a client sends."""

    def inner(params: Any) -> None:
        how(params.get("message", params))

    alter(request, inner)


def parts(said_or_artifact: Any) -> list[Any]:
    """Return the list of parts; the protobuf of 0.3 names that of a message `content`."""
    found: list[Any] = said_or_artifact["content" if "content" in said_or_artifact else "parts"]
    return found


def named(exchange: Ex, before: str, now: str) -> None:
    """Set another identifier of the same length, in request and answers."""
    for each in (*exchange.requests, *exchange.answers):
        rename(each, before, now)
    exchange.target = exchange.target.replace(before, now)


def rename(message: Msg, before: str, now: str) -> None:
    """Replace an identifier with one of the same length everywhere in a payload."""
    assert len(before) == len(now)
    message.data = message.data.replace(before.encode(), now.encode())


def other(ident: str) -> str:
    """Return an unknown id of the same form."""
    return ident[:-6] + ("beef01" if not ident.endswith("beef01") else "beef02")


def sends(talk: Talk, text: str) -> Ex:
    """Return the message/send exchange with this text."""
    return _by_text(talk, "SendMessage", text)


def streams(talk: Talk, text: str) -> Ex:
    """Return the stream that a message with this text began."""
    return _by_text(talk, "SendStreamingMessage", text)


def _by_text(talk: Talk, operation: str, text: str) -> Ex:
    return next(each for each in talk.all(operation) if says(each, text))


def says(exchange: Ex, text: str) -> bool:
    """Return whether the client's message has this text, and was answered."""
    message = said(exchange.requests[0])
    there = exchange.answers and ("parts" in message or "content" in message)
    return bool(there and parts(message)[0].get("text") == text)


def looked_up(talk: Talk) -> Ex:
    """Return a call of GetTask that was answered with a task."""
    return pick(talk, "GetTask")


def restamp(body: Any, seconds: float) -> None:
    """Change the timestamp of the status by this time."""
    stamp: str = body["status"]["timestamp"]
    now = datetime.fromisoformat(stamp.replace("Z", "+00:00")) + timedelta(seconds=seconds)
    body["status"]["timestamp"] = now.isoformat().replace("+00:00", "Z")


def restate(message: Msg, state: str) -> None:
    """Set another state of the status, in the spelling of the version."""

    def write(body: Any) -> None:
        spelled = body["status"]["state"]
        old = spelled.islower()
        name = state.lower().replace("_", "-") if old else f"TASK_STATE_{state}"
        body["status"]["state"] = name

    alter(message, write)


def ask_again(talk: Talk, after: Ex) -> Ex:
    """Append a GetTask for the task of a finished stream, with the whole task as the answer."""
    ident, context = member(after.answers[0], "id"), member(after.answers[0], "contextId")
    made = talk.add(looked_up(talk), after=after)
    named(made, member(made.answers[0], "id"), ident)
    named(made, member(made.answers[0], "contextId"), context)
    artifacts: dict[str, Any] = {}
    for each in after.answers:
        found = held(each.value).get("artifact")
        if found is not None:
            known = artifacts.setdefault(found["artifactId"], found)
            if known is not found:
                known["parts"] += found["parts"]
    status, first = member(after.answers[-1], "status"), held(after.answers[0].value)
    history = {"history": first["history"]} if "history" in first else {}
    alter(
        made.answers[0],
        lambda body: body.update(artifacts=list(artifacts.values()), status=status, **history),
    )
    return made
