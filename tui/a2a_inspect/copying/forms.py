"""The forms in which a call, or one frame of it, can be had: their names, and what makes each of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from a2a_inspect.commands.show import frame_object
from a2a_inspect.copying.call import Call, NotOffered, load
from a2a_inspect.copying.pytest_case import pytest_case
from a2a_inspect.copying.python_sdk import python
from a2a_inspect.copying.shell import curl, grpcurl
from a2a_inspect.decoded import json_text
from a2a_proxy.cli.console import exchange_object
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.decoded import decoded
from a2a_proxy.recording.note_writer import Place
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import key
from a2a_proxy.redaction.labels import withheld


class Form(msgspec.Struct, frozen=True):
    """One form."""

    name: str
    make: Callable[[Call, Frame | None], bytes]
    """Of a call, or of one frame of it where that makes a difference; raises NotOffered."""


def _json(call: Call, frame: Frame | None) -> bytes:
    if frame is not None:
        return json_text(decoded(frame, call.exchange)).encode("utf-8", "replace")
    if not call.whole:
        raise NotOffered("it is too long: take it with show --json")
    frames = [frame_object(each, call.exchange) for each in call.frames]
    return json.dumps({"session": call.session, **exchange_object(call.exchange), "frames": frames}, indent=2).encode()


def _raw(call: Call, frame: Frame | None) -> bytes:
    return (call.first() if frame is None else frame).payload


def _of_call(make: Callable[[Call], str]) -> Callable[[Call, Frame | None], bytes]:
    def of(call: Call, _: Frame | None) -> bytes:
        if any(map(withheld, call.frames)):
            raise NotOffered("its payloads were not recorded: metadata only")
        return make(call).encode("utf-8", "replace")

    return of


def _ids(call: Call, frame: Frame | None) -> bytes:
    exchange = call.exchange
    about = exchange if frame is None else frame
    place = call.place if frame is None else f"{call.place}.{frame.seq}"
    facts = {
        "place": place,
        "task": about.task_id or exchange.task_id,
        "context": about.context_id or exchange.context_id,
        "message": frame.message_id if frame is not None else "",
        "artifact": frame.artifact_id if frame is not None else "",
        "rpc id": frame.rpc_id if frame is not None else "",
        "trace": exchange.trace_context[3:35],
    }
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value).encode("utf-8", "replace")


def made(recording: Recording, place: Place) -> dict[str, bytes | str]:
    """Every form of a call, or of a frame of it; or why there is none. Empty where the recording has no such call."""
    call = load(recording, key(place.session, place.exchange))
    if call is None:
        return {}
    frame = next((each for each in call.frames if each.seq == place.seq), None)
    found: dict[str, bytes | str] = {}
    for name, form in FORMS.items():
        try:
            if frame is None and place.seq >= 0:
                raise NotOffered("it is too far behind in a long exchange")
            found[name] = form.make(call, frame)
        except NotOffered as why:
            found[name] = str(why)
    return found


FORMS = {
    form.name: form
    for form in (
        Form("json", _json),
        Form("raw", _raw),
        Form("curl", _of_call(curl)),
        Form("grpcurl", _of_call(grpcurl)),
        Form("python", _of_call(python)),
        Form("pytest", _of_call(pytest_case)),
        Form("ids", _ids),
    )
}
"""By name, in the order of the menu."""
