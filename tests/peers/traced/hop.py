"""What agents and client of a chain share: a call to the next agent by the SDK's client, and spans
of their own.

How much they do for traces is told them: `none` (nothing: they drop what they were sent), `header`
(they hand on the `traceparent` that came, without a span), `spans` (they are instrumented: spans
that they send, a `traceparent` that names the span of the call).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

# The SDK would add spans for its inner functions as soon as a provider is set.
os.environ["OTEL_INSTRUMENTATION_A2A_SDK_ENABLED"] = "false"

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.helpers import get_stream_response_text
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest
from opentelemetry import propagate
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind, Tracer

TRACEPARENT = "traceparent"
TEXT = "which room is free tonight"


class Next(NamedTuple):
    """Where the next agent is: a binding as cards name it, the address below which its card
    lies."""

    binding: str
    base_url: str


def options(description: str) -> argparse.ArgumentParser:
    """What all of them are told on the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("name", help="who this is, in the card and as service.name")
    parser.add_argument(
        "--book", type=Path, required=True, help="JSON: for each name the agent that it asks"
    )
    parser.add_argument("--trace", choices=("none", "header", "spans"), default="none")
    parser.add_argument("--spans-to", metavar="URL", help="an OTLP backend, over HTTP")
    parser.add_argument(
        "--project", default="default", help="openinference.project.name of the spans"
    )
    return parser


def next_of(name: str, book: Path) -> Next | None:
    """Whom this one asks, as the book says now: nobody knows the addresses before all have begun to
    listen."""
    found = json.loads(book.read_text()).get(name)
    return Next(*found) if found else None


class Traces:
    """What one of them does for traces."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._mode: str = args.trace
        self._name: str = args.name
        self._came: ContextVar[str] = ContextVar("came", default="")
        self._tracer = _tracer(args) if self._mode == "spans" else None

    @contextmanager
    def serving(self, headers: Mapping[str, str]) -> Iterator[None]:
        """A call that came with these headers is answered."""
        if self._tracer is None:
            self._came.set(headers.get(TRACEPARENT, ""))
            yield
            return
        told = {"actor": self._name, "side": "serving"}
        with self._tracer.start_as_current_span(
            f"{self._name} answers", propagate.extract(headers), SpanKind.SERVER, told
        ):
            yield

    @contextmanager
    def asking(self) -> Iterator[dict[str, str]]:
        """The headers of a call that is made."""
        headers: dict[str, str] = {}
        if self._tracer is None:
            if self._mode == "header" and self._came.get():
                headers[TRACEPARENT] = self._came.get()
            yield headers
            return
        name, told = f"{self._name} asks", {"actor": self._name, "side": "asking"}
        with self._tracer.start_as_current_span(name, kind=SpanKind.CLIENT, attributes=told):
            propagate.inject(headers)
            yield headers


def _tracer(args: argparse.Namespace) -> Tracer:
    about = {"service.name": args.name, "openinference.project.name": args.project}
    provider = TracerProvider(resource=Resource(about))
    if args.spans_to:
        provider.add_span_processor(
            SimpleSpanProcessor(OTLPSpanExporter(f"{args.spans_to}/v1/traces"))
        )
    return provider.get_tracer(args.name)


async def ask(traces: Traces, whom: Next, text: str, context_id: str = "") -> str:
    """Ask the next agent, as its card says, and give its answer."""
    with traces.asking() as headers:
        async with httpx.AsyncClient(timeout=100) as http:
            card = await A2ACardResolver(http, whom.base_url).get_agent_card(
                http_kwargs={"headers": headers}
            )
            config = ClientConfig(
                streaming=True,
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[whom.binding],
            )
            client = ClientFactory(config).create(card)
            said = Message(
                message_id=str(uuid.uuid4()),
                role=Role.ROLE_USER,
                parts=[Part(text=text)],
                context_id=context_id,
            )
            events = client.send_message(
                SendMessageRequest(message=said),
                context=ClientCallContext(service_parameters=headers),
            )
            async with asyncio.timeout(100):
                told = [get_stream_response_text(event) async for event in events]
            await client.close()
    return next(text for text in reversed(told) if text)
