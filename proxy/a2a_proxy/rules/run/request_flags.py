"""Flags of an exchange derived from its request and heads, so that most rules are skipped for most
exchanges.

Each flag is a very cheap test that is true whenever a rule might find something; a rule that names
the flag (`required_flags`) then checks precisely. The flags are computed once, at the first answer.
"""

from functools import lru_cache

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.state.records import AgentRecord, ExchangeRecord

CREATE_CONFIG = "CreateTaskPushNotificationConfig"
HISTORY_TAG = b"\x18"
"""Tag of `history_length` in protobuf."""
ZERO_CURRENT, ZERO_MATCH = b"\x20\x00", b"\x28\x00"
"""An explicit 0 as `current_generation` and as `if_generation_match`."""
_PLAIN_VERSIONS = frozenset({"", "0.3", "1.0"})
"""Versions without generations."""


def exchange_flags(agent: AgentRecord, record: ExchangeRecord, exchange: Exchange) -> int:
    """Return the flags from `FrameFlag.CARD_KNOWN` to `FrameFlag.ODD_HEAD`."""
    request_snapshot, request = record.request_snapshot, record.request
    flags = 0
    if agent.card is not None or agent.declarations is not None:
        flags |= _CARD_SEEN_FLAG
    if may_have_extensions(exchange.request_headers) or may_have_extensions(
        exchange.response_headers
    ):
        flags |= _EXTENDS_FLAG
    if exchange.version_header not in _PLAIN_VERSIONS or "eneration" in exchange.target:
        flags |= _COUNTS_FLAG
    if "istory" in exchange.target:
        flags |= _LIMITS_FLAG
    if (
        exchange.status != _OK
        or not exchange.operation
        or "?" in exchange.target
        or "@" in exchange.authority
    ):
        flags |= _ODD_HEAD_FLAG
    if request_snapshot is None or request is None:
        return flags
    if request_snapshot.task_id or request_snapshot.context_id or request_snapshot.is_task_known:
        flags |= _NAMES_FLAG
    payload = request.payload
    if exchange.operation == CREATE_CONFIG or may_have_push_config(payload):
        flags |= _PUSHES_FLAG
    zero = exchange.binding is Binding.GRPC and (ZERO_CURRENT in payload or ZERO_MATCH in payload)
    if request_snapshot.generation or zero or payload.find(b"eneration") >= 0:
        flags |= _COUNTS_FLAG
    if (HISTORY_TAG in payload) if is_protobuf(request.schema) else payload.find(b"istory") >= 0:
        flags |= _LIMITS_FLAG
    return flags


def end_flags(exchange: Exchange) -> int:
    """Return the flag `FrameFlag.ODD_END`, or 0."""
    is_normal = exchange.how == "complete" and exchange.status == _OK and exchange.grpc_status <= 0
    return (
        0
        if is_normal and (exchange.grpc_status == 0 or exchange.binding is not Binding.GRPC)
        else _ODD_END_FLAG
    )


def may_have_push_config(payload: bytes) -> bool:
    """Whether a request may contain a push configuration, which has a URL and, in JSON, a name with
    `otification`."""
    if payload[:1] == b"{" and payload.find(b"otification") < 0:
        return False
    return b"://" in payload or b":\\/\\/" in payload


@lru_cache(256)
def may_have_extensions(headers: Headers) -> bool:
    """Whether a header field may be an extensions field."""
    return any(name[-11:].lower() == b"-extensions" for name, _ in headers)


_CARD_SEEN_FLAG, _EXTENDS_FLAG, _COUNTS_FLAG = (
    int(FrameFlag.CARD_KNOWN),
    int(FrameFlag.EXTENDS),
    int(FrameFlag.COUNTS),
)
_OK = 200
_ODD_HEAD_FLAG, _ODD_END_FLAG = int(FrameFlag.ODD_HEAD), int(FrameFlag.ODD_END)
_NAMES_FLAG, _PUSHES_FLAG, _LIMITS_FLAG = (
    int(FrameFlag.NAMES),
    int(FrameFlag.PUSHES),
    int(FrameFlag.LIMITS),
)
