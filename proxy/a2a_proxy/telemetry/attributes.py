"""The attributes of a call's span: names of the OpenTelemetry drafts if there are any, else
`a2a_proxy.*`. No I/O.

Unknown values are left out. No attribute contains the text of messages, unless the user has enabled
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, ConnectionTls, Exchange
from a2a_proxy.model.wire import TlsFacts
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES, RPC_REASONS
from a2a_proxy.protocol.exchange import HOW_SWITCHED
from a2a_proxy.protocol.outcome import latency_origin
from a2a_proxy.protocol.rest_path import match_request_line
from a2a_proxy.telemetry.call_facts import CallFacts
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.values import Attributes, Value, shorten_value

if TYPE_CHECKING:
    from a2a_proxy.rules.endings.ending import Ending

UNKNOWN_OPERATION = "unknown"
"""Span name of a call that is not an A2A operation. Fixed, because peers could send any number of
names."""
PUSH_OPERATION = "push_notification"
_BINDING_LABELS = {
    Binding.REST: "http+json",
    Binding.CARD: "http+json",
    Binding.WEBHOOK: "http+json",
    Binding.OTHER: "http",
}
_RPC_BINDINGS = JSONRPC_BINDINGS | {Binding.GRPC}
"""Bindings whose requests name a method."""
_CUT_ERROR_TYPES = {
    "client cancel": "client_cancelled",
    "proxy stopped": "proxy_stop",
    "proxy killed": "proxy_stop",
}
_CLOSE_REASONS = {
    "complete": "server_end",
    "client cancel": "client_cancel",
    "agent reset": "rst",
    "proxy stopped": "proxy_stop",
    "proxy killed": "proxy_stop",
}
_LOST_AGENT = ("agent gone", "agent reset")
_IDLE_NS = 30_000_000_000
"""ns of silence after which a lost connection counts as closed for being idle: a proxy in between
closes it without a reason, usually after one minute."""


def span_name(exchange: Exchange) -> str:
    """Return the name of the call's span, one of a small set."""
    if exchange.binding is Binding.WEBHOOK:
        return PUSH_OPERATION
    return exchange.operation or UNKNOWN_OPERATION


def binding_label(exchange: Exchange) -> str:
    """Return the label of the binding: `grpc`, `jsonrpc`, `http+json`, `stdio`."""
    return _BINDING_LABELS.get(exchange.binding, exchange.binding.value)


def error_type(exchange: Exchange, ending: Ending | None = None) -> str:
    """Return the error in one word of a small set: an A2A error, a JSON-RPC code, a gRPC status, an
    HTTP status, or, if the call was cut, the cause of its ending, or how it was cut. Empty on
    success; a failed task is not an error of the call."""
    if exchange.ours:
        return "refused"
    if exchange.error:
        return _reported_error(exchange)
    if exchange.how not in ("complete", ""):
        if ending is not None and ending.severity is not None:
            return ending.cause
        return _CUT_ERROR_TYPES.get(exchange.how, "stream_cut")
    return ""


def _reported_error(exchange: Exchange) -> str:
    word = exchange.error.partition(":")[0].split(" ")[0]
    if word in RPC_REASONS.values():
        return word
    if exchange.grpc_status > 0:
        return (
            GRPC_STATUS_NAMES[exchange.grpc_status]
            if exchange.grpc_status < len(GRPC_STATUS_NAMES)
            else "UNKNOWN"
        )
    if exchange.error_code in RPC_REASONS:
        return RPC_REASONS[exchange.error_code]
    return str(exchange.error_code or exchange.status or "error")


def call_attributes(facts: CallFacts, events: CallEvents) -> Attributes:
    """Return all attributes of a call."""
    exchange = facts.exchange
    made: dict[str, Value | None] = {
        "a2a.method.name": span_name(exchange),
        "a2a.protocol.version": exchange.version_header or exchange.dialect.value,
        "a2a_proxy.wire.version": exchange.dialect.value,
        "a2a_proxy.wire.method": exchange.method if exchange.binding in _RPC_BINDINGS else "",
        "a2a_proxy.binding": binding_label(exchange),
        "error.type": error_type(exchange, facts.ending),
        "peer.service": facts.service,
        **_identity_attributes(facts),
        **_rpc_attributes(exchange),
        **_network_attributes(facts),
        **_stream_attributes(exchange, events),
        **_special_attributes(facts),
    }
    known = {
        name: shorten_value(value)
        for name, value in made.items()
        if value is not None and value not in ("", ())
    }
    return known | facts.content.make_attributes()


def _identity_attributes(facts: CallFacts) -> dict[str, Value | None]:
    exchange, asked, card = facts.exchange, facts.request, facts.card
    return {
        "a2a.task.id": exchange.task_id,
        "a2a.task.state": exchange.states[-1] if exchange.states else "",
        "a2a.message.id": asked.message_id,
        "a2a.message.reference_task_ids": asked.references,
        "a2a.tenant": asked.tenant,
        "gen_ai.conversation.id": exchange.context_id,
        "gen_ai.agent.name": card.name if card else "",
        "gen_ai.agent.version": card.version if card else "",
        "a2a_proxy.exchange": exchange.id,
    }


def _rpc_attributes(exchange: Exchange) -> dict[str, Value | None]:
    if exchange.binding is Binding.GRPC:
        status = exchange.grpc_status
        word = (
            GRPC_STATUS_NAMES[status]
            if 0 <= status < len(GRPC_STATUS_NAMES)
            else str(status)
            if status > 0
            else ""
        )
        return {
            "rpc.system.name": "grpc",
            "rpc.method": exchange.target.lstrip("/"),
            "rpc.status_code": word,
            "rpc.response.status_code": word,
        }
    if exchange.binding in JSONRPC_BINDINGS:
        code = str(exchange.error_code) if exchange.error_code else ""
        return {
            "rpc.system.name": "jsonrpc",
            "rpc.method": exchange.method,
            "rpc.status_code": code,
            "rpc.response.status_code": code,
            "jsonrpc.request.id": _rpc_id_text(exchange.rpc_id),
            "jsonrpc.protocol.version": "2.0",
        }
    return {}


def _rpc_id_text(rpc_id: str) -> str:
    """Return a JSON-RPC id as text, without its JSON quotes."""
    try:
        found = msgspec.json.decode(rpc_id)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return rpc_id
    return found if isinstance(found, str) else rpc_id


def _network_attributes(facts: CallFacts) -> dict[str, Value | None]:
    exchange, connection = facts.exchange, facts.connection
    if exchange.binding is Binding.STDIO:
        return {
            "network.transport": "pipe",
            "a2a_proxy.agent.command": connection.upstream if connection else "",
        }
    upstream, client = (connection.upstream, connection.client) if connection else ("", "")
    process = connection.client_process if connection else None
    host, port = split_address(upstream)
    grpc, socket = exchange.binding is Binding.GRPC, exchange.binding is Binding.WEBSOCKET
    return {
        "network.transport": "tcp",
        "network.protocol.name": "websocket" if socket else "http",
        "network.protocol.version": exchange.http_version,
        "http.request.method": ""
        if socket
        else "POST"
        if grpc or exchange.binding is Binding.JSONRPC
        else exchange.method,
        "url.path": "" if grpc else path_template(exchange),
        "http.response.status_code": exchange.status or None,
        "server.address": host,
        "server.port": port,
        "client.address": split_address(client)[0],
        "a2a_proxy.client.process.pid": process.pid if process else None,
        "a2a_proxy.client.process.name": process.name if process else "",
        **(_tls_attributes(connection.tls) if connection and connection.tls else {}),
    }


def _tls_attributes(tls: ConnectionTls) -> dict[str, Value | None]:
    """Return the attributes of both handshakes; those with the agent have a prefix, because a span
    has one `tls`."""
    found: dict[str, Value | None] = {}
    if tls.client is not None:
        found |= _handshake_attributes(tls.client, "tls", "a2a_proxy.tls")
    if tls.upstream is not None:
        found |= _handshake_attributes(
            tls.upstream, "a2a_proxy.upstream.tls", "a2a_proxy.upstream.tls"
        )
    return found


def _handshake_attributes(facts: TlsFacts, prefix: str, own_prefix: str) -> dict[str, Value | None]:
    found: dict[str, Value | None] = {
        f"{prefix}.established": True,
        f"{prefix}.protocol.name": "tls",
        f"{prefix}.protocol.version": facts.version.removeprefix("TLSv"),
        f"{prefix}.cipher": facts.cipher,
        f"{prefix}.next_protocol": facts.alpn,
        f"{prefix}.client.server_name": facts.server_name,
    }
    for side, certificate in (("server", facts.server), ("client", facts.client)):
        if certificate is not None:
            found[f"{prefix}.{side}.hash.sha256"] = certificate.sha256.upper()
            found[f"{prefix}.{side}.not_after"] = certificate.not_after
            found[f"{own_prefix}.{side}.names"] = certificate.names or None
            found[f"{own_prefix}.{side}.verified"] = certificate.verified
    return found


def path_template(exchange: Exchange) -> str:
    """Return the path with placeholders for ids: `/v1/tasks/{id}`."""
    path = exchange.target.partition("?")[0]
    found = (
        match_request_line(exchange.method, path.encode("latin-1", "replace"))
        if exchange.binding is Binding.REST
        else None
    )
    if found is None:
        return path
    words = path[len(found.prefix) :].split("/")
    slots = {
        "tasks": ("{id}", found.task_id),
        "pushNotificationConfigs": ("{configId}", found.config_id),
    }
    for at in range(len(words) - 1, 0, -1):
        slot, named = slots.get(words[at - 1], ("", ""))
        if named:
            verb = "" if unquote(words[at]) == named else words[at].rpartition(":")[2]
            words[at] = f"{slot}:{verb}" if verb else slot
    return path[: len(found.prefix)] + "/".join(words)


def split_address(text: str) -> tuple[str, int | None]:
    """Return host and port of an address or URL; empty and None if it has none."""
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        return parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return text, None


def _stream_attributes(exchange: Exchange, events: CallEvents) -> dict[str, Value | None]:
    begun = latency_origin(exchange)
    over = bool(exchange.closed)
    return {
        "a2a_proxy.stream": exchange.streaming,
        "a2a_proxy.stream.first_event_ms": _elapsed_ms(begun, exchange.first_event),
        "a2a_proxy.stream.events": exchange.events,
        "a2a_proxy.stream.bytes_in": exchange.bytes_to_agent if over else None,
        "a2a_proxy.stream.bytes_out": exchange.bytes_to_client if over else None,
        "a2a_proxy.stream.max_gap_ms": events.max_gap / 1e6 if exchange.streaming else None,
        "a2a_proxy.stream.close_reason": close_reason(exchange, events.last_heard),
        "a2a_proxy.stream.half_close_first": {"agent": "server"}.get(
            exchange.half_close, exchange.half_close
        ),
        "a2a_proxy.upstream.latency_ms": _elapsed_ms(begun, exchange.response_started),
    }


def _elapsed_ms(started: int, at: int) -> float | None:
    """Return the time from `started` to `at` (both ns) in ms, or None if `at` is not set."""
    return max(at - started, 0) / 1e6 if at else None


def close_reason(exchange: Exchange, last_heard: int) -> str:
    """Return how the call ended, in one word of a small set; empty while it is open. `last_heard`
    is the time of the agent's last frame, ns."""
    silent = exchange.closed - max(
        last_heard, exchange.response_started, exchange.request_ended, exchange.started
    )
    if exchange.how in _LOST_AGENT and exchange.streaming and silent >= _IDLE_NS:
        return "idle"
    if exchange.how.startswith(HOW_SWITCHED):
        return "switched"
    return _CLOSE_REASONS.get(exchange.how, exchange.how.replace(" ", "_"))


def _special_attributes(facts: CallFacts) -> dict[str, Value | None]:
    """Return the attributes that only some calls have: of an agent card, a push delivery, a resumed
    stream."""
    fetch, delivery = facts.fetch, facts.delivery
    return {
        "a2a_proxy.stream.resumed_from": facts.resumed_from or None,
        "a2a_proxy.card.version": fetch.card.version if fetch else "",
        "a2a_proxy.card.signature": ("signed" if fetch.card.signed else "unsigned")
        if fetch
        else "",
        "a2a_proxy.card.changed": fetch.changed if fetch else None,
        "a2a_proxy.push.attempt": delivery.attempt if delivery else None,
        "a2a_proxy.push.token_match": delivery.token if delivery else None,
    }
