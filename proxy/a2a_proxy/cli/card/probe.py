"""Probe the interfaces that a card declares: one GetTask of a random id to each, without
credentials."""

import asyncio
import json
import uuid
from enum import Enum
from typing import Any
from urllib.parse import quote

import aiohttp
import grpc
import grpc.aio
import msgspec
from yarl import URL

from a2a_proxy.cli.card.fetch import (
    FETCH_SECONDS,
    USER_AGENT,
    explain_connection_error,
    printable_url,
    read_bounded,
)
from a2a_proxy.drive.request import CallError, CallTarget, DriveRequest, translate_request
from a2a_proxy.model.values import CARD_BINDINGS, Binding, Dialect
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.errors import GrpcOutcome, error_line, parse_rest_error, rpc_reason
from a2a_proxy.protocol.session_facts import card_facts
from a2a_proxy.protocol.text import to_one_line
from a2a_proxy.relay.edits.card import CardUrl
from a2a_proxy.relay.edits.card_urls import CardAddress, parse_card_url
from a2a_proxy.relay.route import format_address
from a2a_proxy.relay.tls import create_client_context
from a2a_proxy.rules.state.card_declarations import Json, OfferedInterface, read_interfaces

MAX_PROBES = 16
"""Maximum number of interfaces of one card that are probed."""
_OPERATION = "GetTask"
_DETAILS_FIELD = "grpc-status-details-bin"
_BINDINGS = {name: binding for binding, name in CARD_BINDINGS.items()}
_GRPC_CAUSES = {
    "refused": "connection refused",
    "handshake failed": "the TLS handshake failed",
    "failed parsing http/2": "it does not speak HTTP/2 on this port",
    "connect an http1.x server": "it does not speak HTTP/2 on this port",  # before gRPC 1.81
    "errors resolving": "its name cannot be resolved",
}
"""Maps a part of gRPC's own error text, in lower case, to the cause."""
_MAX_ANSWER_BYTES = 1 << 16
_EXPECTED = "TASK_NOT_FOUND"
_NOT_SPOKEN = frozenset({"METHOD_NOT_FOUND", "VERSION_NOT_SUPPORTED"})
"""Errors that mean that the interface does not support the declared version."""


class Verdict(Enum):
    """What the answer says about the declaration."""

    ANSWERS = "answers"
    ODD = "odd"
    """It answers, but not as expected."""
    FAILS = "fails"
    SKIPPED = "skipped"


class ProbeResult(msgspec.Struct, frozen=True):
    """The result of probing one interface."""

    interface: OfferedInterface
    dialect: Dialect
    """The dialect in which a client calls the interface."""
    verdict: Verdict
    words: str
    """The answer, or why there is no answer."""

    @property
    def label(self) -> str:
        """The interface: `JSONRPC 1.0 at https://host/a2a`."""
        name = " ".join(filter(None, (self.interface.binding, str(self.dialect))))
        return f"{name} at {printable_url(self.interface.url)}"


async def probe_interfaces(card: Json) -> list[ProbeResult]:
    """Return the result of each interface of the card, in the order of the card; an interface that
    is declared in the forms of 0.3 and of 1.0 is probed once. Never raises because of an answer.
    """
    distinct: dict[tuple[str, ...], tuple[OfferedInterface, Dialect]] = {}
    for offer in read_interfaces(card):
        dialect = _dialect_of(offer, card)
        distinct.setdefault(
            (offer.binding, offer.url.rstrip("/"), str(dialect), offer.tenant), (offer, dialect)
        )
    offers = list(distinct.values())
    answers = await asyncio.gather(*(_probe_interface(*each) for each in offers[:MAX_PROBES]))
    skipped = (Verdict.SKIPPED, f"not probed: only the first {MAX_PROBES} interfaces are")
    answers += [skipped] * (len(offers) - len(answers))
    return [ProbeResult(*offer, *answer) for offer, answer in zip(offers, answers, strict=True)]


def _dialect_of(offer: OfferedInterface, card: Json) -> Dialect:
    """Return the dialect in which a client calls the interface."""
    if offer.path.startswith("supportedInterfaces"):
        found = dialect_of_version(offer.version)
        return Dialect.V1_0 if found is Dialect.UNKNOWN else found
    version = card_facts(
        {name: value for name, value in card.items() if name != "supportedInterfaces"}
    ).version
    found = dialect_of_version(version)
    return Dialect.V0_3 if found is Dialect.UNKNOWN else found


async def _probe_interface(offer: OfferedInterface, dialect: Dialect) -> tuple[Verdict, str]:
    binding = _BINDINGS.get(offer.binding)
    address = parse_card_url(CardUrl(offer.url, offer.binding))
    if binding is None:
        return Verdict.SKIPPED, f"not probed: {offer.binding or 'no binding'} is not a core binding"
    if address is None:
        return Verdict.SKIPPED, "not probed: the URL is invalid or has user information"
    params = {"id": str(uuid.uuid4())} | ({"tenant": offer.tenant} if offer.tenant else {})
    try:
        request = translate_request(params, CallTarget(binding, dialect, _OPERATION), (), 1)
    except CallError as wrong:
        return Verdict.SKIPPED, f"not probed: {wrong}"
    if binding is Binding.GRPC:
        verdict, words = await _call_grpc(address, request)
    else:
        verdict, words = await _call_http(offer.url, binding, dialect, request)
    return verdict, f"{words}; expected {_EXPECTED}" if verdict is Verdict.ODD else words


async def _call_http(
    url: str, binding: Binding, dialect: Dialect, request: DriveRequest
) -> tuple[Verdict, str]:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
    connector = aiohttp.TCPConnector(ssl=create_client_context())
    timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
    try:
        target = (
            URL(f"{url.rstrip('/')}{request.target}", encoded=True)
            if binding is Binding.REST
            else URL(url)
        )
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=timeout, headers={"User-Agent": USER_AGENT}
            ) as http,
            http.request(
                request.method,
                target,
                data=request.payload or None,
                headers=headers,
                allow_redirects=False,
            ) as response,
        ):
            body = await read_bounded(response, _MAX_ANSWER_BYTES)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as wrong:
        return Verdict.FAILS, explain_connection_error(wrong)
    if response.status in (401, 403):
        return Verdict.ANSWERS, f"requires authentication (status {response.status})"
    if 300 <= response.status < 400:
        location = response.headers.get("Location", "")
        return Verdict.FAILS, f"status {response.status}, a redirect to {printable_url(location)}"
    return _judge_body(binding, dialect, response.status, response.content_type, body)


def _judge_body(
    binding: Binding, dialect: Dialect, status: int, media_type: str, body: bytes
) -> tuple[Verdict, str]:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if binding is Binding.JSONRPC and isinstance(value, dict) and "jsonrpc" in value:
        return _judge_rpc(value, dialect)
    if binding is Binding.REST and isinstance(value, dict):
        return _judge_rest(value, status)
    wanted = "JSON-RPC" if binding is Binding.JSONRPC else "a JSON object"
    return Verdict.FAILS, f"status {status} with {media_type}, which is not {wanted}"


def _judge_rpc(value: Json, dialect: Dialect) -> tuple[Verdict, str]:
    error = value.get("error")
    if not isinstance(error, dict):
        return Verdict.ODD, "returns a result for a task that cannot exist"
    code, message = error.get("code"), error.get("message")
    number = code if isinstance(code, int) else 0
    reason = rpc_reason(number, error.get("data"), dialect)
    return _verdict_of_reason(reason), error_line(
        reason, number, message if isinstance(message, str) else ""
    )


def _judge_rest(value: Json, status: int) -> tuple[Verdict, str]:
    if status < 400:
        return Verdict.ODD, f"returns status {status} for a task that cannot exist"
    reason, message = parse_rest_error(value)
    line = error_line(reason, status, message)
    # Before 1.0 the body of an error has no fixed form; of the usual ones only the message names
    # the task.
    if status == 404 and (reason in (_EXPECTED, "NOT_FOUND") or "task" in message.lower()):
        return Verdict.ANSWERS, line
    if status == 404 and not reason:
        return Verdict.FAILS, f"{line}, which is not an A2A error: nothing is served at this path"
    return _verdict_of_reason(reason), line


def _verdict_of_reason(reason: str) -> Verdict:
    if reason == _EXPECTED:
        return Verdict.ANSWERS
    return Verdict.FAILS if reason in _NOT_SPOKEN else Verdict.ODD


async def _call_grpc(address: CardAddress, request: DriveRequest) -> tuple[Verdict, str]:
    tls = address.port == 443 if address.tls is None else address.tls
    target = format_address(address.host, address.port)
    options = (
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),  # as for HTTP
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
    )
    metadata = [
        (name.lower().decode(), value.decode())
        for name, value in request.headers
        if name.lower() == b"a2a-version"
    ]
    channel = (
        grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), options)
        if tls
        else grpc.aio.insecure_channel(target, options)
    )
    try:
        call: Any = channel.unary_unary(request.target, _pass_bytes, _pass_bytes)
        await call(request.payload, metadata=metadata, timeout=FETCH_SECONDS)
    except grpc.aio.AioRpcError as wrong:
        return _judge_grpc(wrong, tls=tls)
    finally:
        await channel.close(None)
    return Verdict.ODD, "returns a task for an id that cannot exist"


def _pass_bytes(data: bytes) -> bytes:
    return data


def _judge_grpc(error: grpc.aio.AioRpcError, *, tls: bool) -> tuple[Verdict, str]:
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Verdict.FAILS, explain_connection_error(TimeoutError())
    if code is grpc.StatusCode.UNAVAILABLE:
        causes = (words for part, words in _GRPC_CAUSES.items() if part in details.lower())
        return (
            Verdict.FAILS,
            f"{next(causes, to_one_line(details))} ({'with' if tls else 'without'} TLS)",
        )
    outcome = _outcome_of(error)
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return Verdict.ANSWERS, f"requires authentication ({outcome.error_text})"
    if code is grpc.StatusCode.NOT_FOUND:
        return Verdict.ANSWERS, outcome.error_text
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return Verdict.FAILS, outcome.error_text
    return _verdict_of_reason(outcome.reason), outcome.error_text


def _outcome_of(error: grpc.aio.AioRpcError) -> GrpcOutcome:
    """Return the status, message and ErrorInfo of a failed call."""
    number, _ = error.code().value
    headers = [
        (b"grpc-status", str(number).encode()),
        (b"grpc-message", quote(error.details() or "").encode()),
    ]
    trailers: Any = error.trailing_metadata()
    # gRPC has decoded the value; after a NUL byte it is read as it is.
    headers += [
        (b"grpc-status-details-bin", b"\0" + value)
        for name, value in trailers
        if name == _DETAILS_FIELD
    ]
    return GrpcOutcome(tuple(headers))
