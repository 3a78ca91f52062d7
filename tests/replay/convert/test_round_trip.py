"""Payloads of the samples converted into the form of each binding and back are unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from a2a_proxy import Recording
from a2a_proxy.model.values import Binding, Dialect, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, message_names
from a2a_proxy.protocol.schema import JSON, is_protobuf, schema_of, schema_set_of
from a2a_proxy.recording.difference.view import canonical_payload
from a2a_proxy.replay.convert.protobuf_bytes import encode_answer, encode_request
from a2a_proxy.replay.convert.requests import convert_request, grpc_path, rest_call, rpc_method
from a2a_proxy.replay.convert.responses import convert_answer
from support_thin import thin

SAMPLES = sorted((Path(__file__).parents[3] / "recordings").glob("*.a2a.jsonl"))
ONLY_RPC = frozenset({Dialect.V0_1, Dialect.VENDOR})
"""Dialects that had neither REST nor gRPC."""
BY_CONFIG = ("GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig")
PLAIN = (Binding.JSONRPC, Binding.REST, Binding.GRPC, Binding.STDIO)
ZONED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+?)0*)?(?:Z|\+00:00)?")


def cases(sample: Path) -> Iterator[tuple[Frame, Exchange, bool, Any]]:
    """Frame, exchange, whether it is a request, and its canonical form."""
    with Recording(sample) as recording:
        for each in recording.exchanges():
            facts = each.facts
            if not facts.operation or facts.binding not in PLAIN:
                continue
            for one in each.frames():
                frame = replace(one.facts, payload=one.payload)
                asked = frame.direction is Direction.TO_AGENT and frame.kind is FrameKind.REQUEST
                if asked or frame.kind in (FrameKind.RESPONSE, FrameKind.EVENT):
                    yield frame, facts, asked, canonical_payload(frame, facts)


def by_rpc(frame: Frame, facts: Exchange, asked: bool, value: Any) -> Any:
    """Into JSON-RPC and back."""
    if asked:
        params = convert_request(value, facts.operation, facts.dialect, Binding.JSONRPC)
        answer: dict[str, Any] = {
            "method": rpc_method(facts.operation, facts.dialect),
            "params": params,
        }
    else:
        answer = {"result": convert_answer(value, facts.operation, facts.dialect, Binding.JSONRPC)}
    data = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, **answer})
    return canonical_payload(
        replace(frame, payload=data, schema=JSON), replace(facts, binding=Binding.JSONRPC)
    )


def by_rest(frame: Frame, facts: Exchange, asked: bool, value: Any) -> Any:
    """Into REST and back."""
    if not asked:
        data = msgspec.json.encode(
            convert_answer(value, facts.operation, facts.dialect, Binding.REST)
        )
        return canonical_payload(
            replace(frame, payload=data, schema=JSON), replace(facts, binding=Binding.REST)
        )
    call = rest_call(value, facts.operation, facts.dialect)
    data = b"" if call.body is None else msgspec.json.encode(call.body)
    rest_facts = replace(facts, binding=Binding.REST, method=call.method, target=call.target)
    return canonical_payload(replace(frame, payload=data, schema=JSON if data else ""), rest_facts)


def by_grpc(frame: Frame, facts: Exchange, asked: bool, value: Any) -> Any:
    """Into protobuf and back."""
    assert grpc_path(facts.operation, facts.dialect)
    schema = frame.schema if is_protobuf(frame.schema) else ""
    data = (encode_request if asked else encode_answer)(
        value, facts.operation, facts.dialect, schema
    )
    names = message_names(OPERATION_BY_NAME[facts.operation], facts.dialect)
    schema = schema or schema_of(schema_set_of(facts.dialect), names[not asked])
    return canonical_payload(
        replace(frame, payload=data, schema=schema), replace(facts, binding=Binding.GRPC)
    )


def reduced(value: Any) -> Any:
    """Without what protobuf does not tell: defaults, how a time is written; numbers of 64 bits as
    text."""
    if isinstance(value, dict):
        found = {name: reduced(item) for name, item in value.items()}
        found.pop("stateTransitionHistory", None)
        if "currentGeneration" in found:
            found["currentGeneration"] = str(found["currentGeneration"])
        return {name: item for name, item in found.items() if item not in ("", [], {}, False, None)}
    if isinstance(value, list):
        return [reduced(one) for one in value]
    stamp = ZONED.fullmatch(value) if isinstance(value, str) else None
    return f"{stamp[1]}.{stamp[2] or 0}" if stamp else value


WAYS: dict[Binding, Callable[[Frame, Exchange, bool, Any], Any]] = {
    Binding.JSONRPC: by_rpc,
    Binding.REST: by_rest,
    Binding.GRPC: by_grpc,
}


@pytest.mark.parametrize(
    "sample", thin(SAMPLES, 4), ids=lambda sample: sample.name.partition(".a2a")[0]
)
def test_round_trip(sample: Path) -> None:
    """Equal over the recorded binding; over another one except facts that protobuf does not
    carry."""
    seen = 0
    for frame, facts, asked, value in cases(sample):
        for binding, way in WAYS.items():
            live = facts.operation in ("SendLiveMessage", "ReconnectToTask")
            if (live and binding is not Binding.GRPC) or (
                facts.dialect in ONLY_RPC and binding is not Binding.JSONRPC
            ):
                continue
            if (
                binding is Binding.REST
                and asked
                and "id" not in value
                and facts.operation in BY_CONFIG
            ):
                continue  # 0.x may leave out which one; a path cannot
            back = way(frame, facts, asked, value)
            same = binding is facts.binding or (
                facts.binding is Binding.STDIO and binding is Binding.JSONRPC
            )
            where = (facts.id, frame.seq, binding)
            assert (where, back if same else reduced(back)) == (
                where,
                value if same else reduced(value),
            )
            seen += 1
    assert seen > 5
