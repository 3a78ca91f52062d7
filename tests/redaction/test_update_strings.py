"""Redaction that tests only the strings of a status update yields what a test of the whole payload
yields."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.message import JsonReader, read_protobuf
from a2a_proxy.redaction import Redactor, RedactorState

KEY = b"k" * 32
TOKEN = "wx-Ab3dE5gH7jK9mN1p"
"""A secret that only its place reveals."""
SECRETS = [
    f"token: {TOKEN}",
    "Bearer abcdefghijklmnop1234",
    "sk-proj-abcdefghijklmnop1234567890",
    '{"password": "hunter2hunter2"}',
    "curl -u me:hunter2hunter2 http://a",
    "https://me:hunter2hunter2@a.example",
    "--api-key hunter2hunter2",
    "%74oken=hunter2hunter2",
    TOKEN,
]
TEXTS = st.lists(
    st.sampled_from(
        [
            *SECRETS,
            "said ",
            " key",
            "é",
            "\n",
            '"',
            "\\",
            "\x12",
            "\x1a\x06",
            "{",
            " the task's token ",
            "€",
        ]
    )
    | st.text(max_size=8),
    max_size=4,
).map("".join)
"""Texts, many of them with a secret, or with the half of one."""
IDS = st.sampled_from(["m1", "3f0e1c9a-5b7d-4e21-8a6b-0c1d2e3f4a5b", TOKEN, "token=hunter2hunter2"])
FORMS = {
    "json 1.0": (Binding.JSONRPC, Dialect.V1_0, "SendStreamingMessage", "json"),
    "json 0.3": (Binding.JSONRPC, Dialect.V0_3, "message/stream", "json"),
    "rest 1.0": (Binding.REST, Dialect.V1_0, "POST", "json"),
    "rest 0.3": (Binding.REST, Dialect.V0_3, "POST", "json"),
    "grpc 1.0": (Binding.GRPC, Dialect.V1_0, "SendStreamingMessage", "lf.a2a.v1.StreamResponse"),
    "grpc 0.3": (Binding.GRPC, Dialect.V0_3, "SendStreamingMessage", "a2a.v1.StreamResponse"),
}


def update_of(
    form: str, text: str, ids: tuple[str, str, str], stamp: str, **members: Any
) -> dict[str, Any]:
    """Return a status update in the JSON of a binding."""
    task_id, context_id, message_id = ids
    old, proto = form == "json 0.3", "0.3" in form and form != "json 0.3"
    message: dict[str, Any] = {
        "messageId": message_id,
        "role": "agent" if old else "ROLE_AGENT",
        "content" if proto else "parts": [
            {"kind": "text", "text": text} if old else {"text": text}
        ],
    }
    state = {"state": "working" if old else "TASK_STATE_WORKING"} | (
        {"timestamp": stamp} if stamp else {}
    )
    update = {
        "taskId": task_id,
        "contextId": context_id,
        "status": {**state, "message": message},
    } | members
    if old:
        message["kind"] = "message"
        return {"kind": "status-update", "final": False, **update}
    return {"statusUpdate": update}


def frame_of(
    form: str, update: dict[str, Any], ids: tuple[str, str, str], rpc_id: str
) -> tuple[Frame, Exchange]:
    """Return the update as a frame, and its exchange."""
    binding, dialect, method, schema = FORMS[form]
    if binding is Binding.GRPC:
        payload, rpc = (
            from_dict(
                "1.0" if "1.0" in form else "0.3", "StreamResponse", update
            ).SerializeToString(),
            "",
        )
    elif binding is Binding.JSONRPC:
        payload = msgspec.json.encode({"jsonrpc": "2.0", "id": rpc_id, "result": update})
        rpc = msgspec.json.encode(rpc_id).decode()
    else:
        payload, rpc = msgspec.json.encode(update), ""
    task_id, context_id, message_id = ids
    frame = Frame(
        *(1, 1, 1, Direction.TO_CLIENT, FrameKind.EVENT, 1, 1, 0, 1, payload, len(payload)),
        schema=schema,
        event=EventKind.STATUS,
        task_id=task_id,
        context_id=context_id,
        message_id=message_id,
        state=2,
        rpc_id=rpc,
    )
    exchange = Exchange(
        1, 1, 1, binding, 1, dialect=dialect, operation="SendStreamingMessage", method=method
    )
    return frame, msgspec.structs.replace(exchange, rpc_id=rpc)


def strings_of(frame: Frame, exchange: Exchange) -> tuple[bytes, ...] | None:
    """Return the strings that the strict decoder reads of an update."""
    if exchange.binding is Binding.GRPC:
        return read_protobuf(frame.schema, frame.payload).strings()
    return JsonReader().read(frame.payload, exchange, frame.kind).strings()


@pytest.mark.parametrize("form", FORMS)
def test_usual_updates_have_known_strings(form: str) -> None:
    """Otherwise the whole payload is tested, which takes longer."""
    for stamp in ("", "2026-01-02T03:04:05.678Z"):
        ids = ("t1", "c1", "m1")
        frame, exchange = frame_of(form, update_of(form, "said", ids, stamp), ids, "7")
        strings = strings_of(frame, exchange)
        assert strings is not None
        assert strings[:2] == (b"said", b"m1")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["update", "message", "part"])
def test_other_strings_are_not_overlooked(form: str, place: str) -> None:
    """Metadata may hold anything."""
    ids = ("t1", "c1", "m1")
    update = update_of(form, "said", ids, "")
    inner = update.get("statusUpdate", update)
    message = inner["status"]["message"]
    (part,) = message.get("parts") or message["content"]
    {"update": inner, "message": message, "part": part}[place]["metadata"] = {"note": TOKEN}
    frame, exchange = frame_of(form, update, ids, "7")
    assert strings_of(frame, exchange) is None


@settings(deadline=None, max_examples=120)
@given(
    form=st.sampled_from(list(FORMS)),
    text=TEXTS,
    ids=st.tuples(IDS, IDS, IDS),
    rpc_id=IDS,
    stamp=st.sampled_from(["", "2026-01-02T03:04:05.678Z"]),
    metadata=st.none() | st.fixed_dictionaries({"note": TEXTS}),
    names=st.sampled_from([set[str](), {"text"}, {"messageid"}]),
    knows=st.booleans(),
)
def test_redaction_by_strings_and_by_payload_agree(
    form: str,
    text: str,
    ids: tuple[str, str, str],
    rpc_id: str,
    stamp: str,
    metadata: dict[str, str] | None,
    names: set[str],
    knows: bool,
) -> None:
    """Whatever the redactor knows: secrets of earlier frames, names of cards."""
    members = {} if metadata is None else {"metadata": metadata}
    frame, exchange = frame_of(form, update_of(form, text, ids, stamp, **members), ids, rpc_id)
    strings = strings_of(frame, exchange)
    done = []
    for given_strings in (None, strings):
        redactor = Redactor(KEY)
        redactor.restore(RedactorState(set(names), [TOKEN.encode()] if knows else [], {}))
        sieved = redactor.sieve_frames([frame], [given_strings])
        single = redactor.redact_frame(frame, None, strings=given_strings)
        done.append(
            (single, redactor.redact_frame(frame, None, sieved, given_strings), redactor.save())
        )
    assert done[0] == done[1]
