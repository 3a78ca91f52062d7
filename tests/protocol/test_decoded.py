"""A payload as JSON values: the forms that no other module's tests cover."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from a2a_proto import from_dict, message_class
from a2a_proxy.model.values import Direction, Frame, FrameKind
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.schema import TRAILERS

DETAILS = "grpc-status-details-bin"


def read_trailers(value: bytes) -> object:
    """Return the decoded value of the trailer with the details of an error."""
    pairs = [["grpc-status", "3"], [DETAILS, value.decode("latin-1")]]
    payload = json.dumps(pairs).encode()
    frame = Frame(
        connection=1,
        exchange=1,
        seq=0,
        began=1,
        at=1,
        start=0,
        end=9,
        direction=Direction.TO_CLIENT,
        kind=FrameKind.END,
        payload=payload,
        schema=TRAILERS,
        size=len(payload),
    )
    status, details = readable_payload(frame, None)
    assert (status, details[0]) == (["grpc-status", "3"], DETAILS)
    return details[1]


@pytest.mark.parametrize("form", ["base64", "raw"])
def test_the_details_of_an_error_are_an_object(form: str) -> None:
    detail = from_dict("rpc", "RetryInfo", {"retryDelay": "2s"})
    status: Any = message_class("rpc", "Status")(code=3)
    status.details.add(
        type_url="type.googleapis.com/google.rpc.RetryInfo", value=detail.SerializeToString()
    )
    data = status.SerializeToString()
    assert read_trailers(base64.b64encode(data) if form == "base64" else b"\0" + data) == {
        "code": 3,
        "message": "",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}],
    }


def nested_status() -> bytes:
    """A status in whose details others are nested, more deeply than JSON can show."""
    status: Any = message_class("rpc", "Status")(code=3)
    for _ in range(400):
        outer: Any = message_class("rpc", "Status")(code=3)
        outer.details.add(
            type_url="type.googleapis.com/google.rpc.Status", value=status.SerializeToString()
        )
        status = outer
    return b"\0" + status.SerializeToString()


@pytest.mark.parametrize("value", [b"", b"\0\xff\xff", b"!not base64!", nested_status()])
def test_unreadable_details_stay_text(value: bytes) -> None:
    assert read_trailers(value) == value.decode("latin-1")
