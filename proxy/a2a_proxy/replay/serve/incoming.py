"""Requests of clients in the form that the player takes: operation, dialect, canonical request.
Performs no I/O."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

from a2a_proto import LivePayload
from a2a_proxy.model.values import Binding, Dialect, FrameKind
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.protocol.canonical_form import canonical_body, members_of_target
from a2a_proxy.protocol.dialect import (
    DialectEvidence,
    classify_dialect,
    dialect_of_request,
    dialect_of_version,
)
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.live import detect_payload, live_schema
from a2a_proxy.protocol.operations import (
    GRPC_METHODS,
    JSONRPC_METHODS,
    OPERATION_BY_NAME,
    message_names,
)
from a2a_proxy.protocol.rest_path import RestMatch, match_request_line
from a2a_proxy.protocol.schema import BYTES, JSON, schema_of, schema_set_of
from a2a_proxy.protocol.session_facts import path_of
from a2a_proxy.replay.convert.responses import OLD_DIALECTS
from a2a_proxy.replay.core.script import LIVE_OPERATIONS, PlayerRequest, RecordedCall, ReplayScript

_VERSION = b"a2a-version"
PAYLOADS: tuple[LivePayload, ...] = ("bidi", "1975", "2153")
"""Payloads of live streams (manual/protocol.md "Live proposals")."""


class RpcRequest(msgspec.Struct, frozen=True):
    """One JSON-RPC call."""

    id: Any
    """The id as received; None if there is none."""
    request: PlayerRequest


class RpcParseError(Exception):
    """Bytes that are not a JSON-RPC call, with the code and message of the error that answers
    them."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestReader:
    """Reads requests. Where a request is ambiguous, the recorded calls decide."""

    def __init__(self, script: ReplayScript) -> None:
        calls = script.calls
        self._old_dialect = _most_common(
            call.dialect for call in calls if call.dialect in OLD_DIALECTS
        )
        """The dialect before 1.0 that most recorded calls use; UNKNOWN if none does."""
        self._has_new_dialect = any(call.dialect not in OLD_DIALECTS for call in calls)
        lives = {call.live_payload for call in calls if call.live_payload}
        self._live_payload = lives.pop() if len(lives) == 1 else ""
        """The payload of the recorded live streams, if all have the same."""
        self._tenants = frozenset(call.tenant for call in calls if call.tenant)
        self.rpc_paths = frozenset(
            unquote(call.target.partition("?")[0])
            for call in calls
            if call.binding is Binding.JSONRPC
        )
        """Paths at which JSON-RPC was recorded: any request there is taken as JSON-RPC."""
        self._agents_at: dict[str, set[str]] = defaultdict(set)
        """Base path of calls over HTTP -> their agents."""
        for call in calls:
            if call.binding in (Binding.JSONRPC, Binding.REST):
                self._agents_at[_base_path(call)].add(call.agent)

    def read_rpc(
        self, body: bytes, headers: Headers, binding: Binding = Binding.JSONRPC, target: str = ""
    ) -> RpcRequest:
        """Read a JSON-RPC call, over HTTP to this target. Raises RpcParseError."""
        try:
            call = msgspec.json.decode(body)
        except UNREADABLE_ERRORS:
            raise RpcParseError(-32700, "Parse error: the body is not JSON") from None
        if not isinstance(call, dict) or not isinstance(call.get("method"), str):
            raise RpcParseError(-32600, "Invalid request: not a JSON-RPC call with a method")
        operation, proof = JSONRPC_METHODS.get(call["method"], (None, Dialect.UNKNOWN))
        params = call.get("params", {})
        name = operation.name if operation is not None else call["method"]
        shown = (
            dialect_of_request(msgspec.json.encode(params))
            if isinstance(params, dict)
            else Dialect.UNKNOWN
        )
        version = header_value(headers, _VERSION).decode("latin-1")
        dialect, _ = classify_dialect(DialectEvidence(proof, version, shown, self._old_dialect))
        if dialect is Dialect.V0_3 and self._old_dialect is Dialect.V0_2:
            dialect = Dialect.V0_2  # their bodies are the same
        value = canonical_body(body, JSON, dialect, name if operation else "", FrameKind.REQUEST)
        request = self._make_request(
            name, value, binding, dialect, "", headers, path_of(target) if target else None
        )
        return RpcRequest(call.get("id"), request)

    def read_rest(
        self, found: RestMatch, method: str, target: str, body: bytes, headers: Headers
    ) -> PlayerRequest:
        """Read a REST request whose request line is matched by `found`."""
        version_dialect = dialect_of_version(
            header_value(headers, _VERSION).decode("latin-1") or found.get_parameter("a2a-version")
        )
        dialect = self._rest_dialect(found.prefix, version_dialect)
        operation = found.operation.name
        value = canonical_body(body, JSON, dialect, operation, FrameKind.REQUEST)
        if isinstance(value, dict):
            value = {**members_of_target(method, target), **value}
        tenant = found.get_parameter("tenant") or self._tenant_of_prefix(found.prefix)
        return self._make_request(
            operation, value, Binding.REST, dialect, tenant, headers, path_of(found.prefix)
        )

    def read_grpc(
        self, path: str, body: bytes | None, headers: Headers
    ) -> tuple[PlayerRequest, str]:
        """Read a gRPC call from its first message; return it with the schema of the message.

        The body is None if the client ended the call without a message.
        """
        message, body = body, body or b""
        operation, proof = GRPC_METHODS.get(path, (None, Dialect.UNKNOWN))
        if operation is None:
            return self._make_request(path, {}, Binding.GRPC, Dialect.V1_0, "", headers), BYTES
        version_dialect = dialect_of_version(header_value(headers, _VERSION).decode("latin-1"))
        dialect = (
            Dialect.V1_1 if proof is Dialect.V1_0 and version_dialect is Dialect.V1_1 else proof
        )
        schema = request_schema(operation.name, dialect, body, self._live_payload)
        value = (
            self.read_message(operation.name, dialect, body, schema)
            if message is not None
            else None
        )
        return self._make_request(operation.name, value, Binding.GRPC, dialect, "", headers), schema

    def read_message(self, operation: str, dialect: Dialect, body: bytes, schema: str) -> Any:
        """Read one more message of a client into canonical form."""
        return canonical_body(body, schema, dialect, operation, FrameKind.REQUEST)

    def _make_request(
        self,
        operation: str,
        value: Any,
        binding: Binding,
        dialect: Dialect,
        tenant: str,
        headers: Headers,
        base: str | None = None,
    ) -> PlayerRequest:
        """Return a request. `base`: its base path; None if the binding has none."""
        tenant_value = value.get("tenant") if isinstance(value, dict) else None
        tenant = tenant or (tenant_value if isinstance(tenant_value, str) else "")
        agents = self._agents_at.get(base, set()) if base is not None else set()
        return PlayerRequest(
            operation=operation,
            value=value,
            binding=binding,
            dialect=dialect,
            tenant=tenant,
            headers=headers,
            agent=next(iter(agents)) if len(agents) == 1 else "",
        )

    def _rest_dialect(self, prefix: str, version_dialect: Dialect) -> Dialect:
        if version_dialect in (Dialect.V1_0, Dialect.V1_1):
            return version_dialect
        old = prefix.endswith("/v1") and self._old_dialect is not Dialect.UNKNOWN
        return self._old_dialect if old or not self._has_new_dialect else Dialect.V1_0

    def _tenant_of_prefix(self, prefix: str) -> str:
        last = prefix.rpartition("/")[2]
        return last if last in self._tenants else ""


def request_schema(operation: str, dialect: Dialect, body: bytes, live: str) -> str:
    """Return the schema of a client's message; `live` is the payload of a live stream, empty to
    detect it from the bytes."""
    if operation not in LIVE_OPERATIONS:
        return schema_of(
            schema_set_of(dialect), message_names(OPERATION_BY_NAME[operation], dialect)[0]
        )
    payload = next((each for each in PAYLOADS if each == live), None)
    return live_schema(payload or detect_payload(Direction.TO_AGENT, body), Direction.TO_AGENT)


def match_rest(method: str, target: str) -> RestMatch | None:
    """Return the operation of a request line."""
    return match_request_line(method, target.encode("latin-1", "replace"))


def _base_path(call: RecordedCall) -> str:
    if call.binding is not Binding.REST:
        return path_of(call.target)
    found = match_rest("POST", call.target) or match_rest("GET", call.target)
    return path_of(found.prefix) if found is not None else ""


def _most_common(dialects: Iterable[Dialect]) -> Dialect:
    counted = Counter(dialects).most_common(1)
    return counted[0][0] if counted else Dialect.UNKNOWN
