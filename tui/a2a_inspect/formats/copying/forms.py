"""The forms of a call or frame: their names and functions."""

import json
from collections.abc import Callable

import msgspec

from a2a_inspect.data.frame_objects import frame_object
from a2a_inspect.data.payload_lines import json_text
from a2a_inspect.formats.copying.call import CopiedCall, NotOffered, load_call
from a2a_inspect.formats.copying.pytest_case import pytest_module
from a2a_inspect.formats.copying.python_sdk import python_program
from a2a_inspect.formats.copying.shell import curl_command, grpcurl_command
from a2a_proxy.model.values import Frame
from a2a_proxy.present.text import exchange_object
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.note_writer import NotePlace
from a2a_proxy.redaction.labels import is_withheld


class CopyForm(msgspec.Struct, frozen=True):
    """One form."""

    name: str
    make: Callable[[CopiedCall, Frame | None], bytes]
    """Function that creates the form of a call, or of one frame of it if the form differs by frame.
    Raises NotOffered.
    """


def _json_form(call: CopiedCall, frame: Frame | None) -> bytes:
    if frame is not None:
        return json_text(readable_payload(frame, call.exchange)).encode("utf-8", "replace")
    if not call.is_complete:
        raise NotOffered("it is too long: use show --json")
    frames = [frame_object(each, call.exchange) for each in call.frames]
    return json.dumps(
        {"session": call.session, **exchange_object(call.exchange), "frames": frames}, indent=2
    ).encode()


def _raw_form(call: CopiedCall, frame: Frame | None) -> bytes:
    return (call.first_request() if frame is None else frame).payload


def _whole_call_form(
    make: Callable[[CopiedCall], str],
) -> Callable[[CopiedCall, Frame | None], bytes]:
    def of(call: CopiedCall, _: Frame | None) -> bytes:
        if any(map(is_withheld, call.frames)):
            raise NotOffered("its payloads were not recorded")
        return make(call).encode("utf-8", "replace")

    return of


def _ids_form(call: CopiedCall, frame: Frame | None) -> bytes:
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
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value).encode(
        "utf-8", "replace"
    )


def make_forms(recording: Recording, place: NotePlace) -> dict[str, bytes | str]:
    """Return each form of a call or frame, or the reason why it is not available.

    Empty if the recording has no such call.
    """
    call = load_call(recording, make_key(place.session, place.exchange))
    if call is None:
        return {}
    frame = next((each for each in call.frames if each.seq == place.seq), None)
    found: dict[str, bytes | str] = {}
    for name, form in FORMS.items():
        try:
            if frame is None and place.seq >= 0:
                raise NotOffered("it is too far into a long exchange")
            found[name] = form.make(call, frame)
        except NotOffered as why:
            found[name] = str(why)
    return found


FORMS = {
    form.name: form
    for form in (
        CopyForm("json", _json_form),
        CopyForm("raw", _raw_form),
        CopyForm("curl", _whole_call_form(curl_command)),
        CopyForm("grpcurl", _whole_call_form(grpcurl_command)),
        CopyForm("python", _whole_call_form(python_program)),
        CopyForm("pytest", _whole_call_form(pytest_module)),
        CopyForm("ids", _ids_form),
    )
}
"""Name -> form, in the order of the menu."""
