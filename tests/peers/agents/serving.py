"""Serves an agent of a2a-sdk 1.x over JSON-RPC, REST and gRPC, on ports of its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import grpc
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import AgentCard
from starlette.applications import Starlette

Made = tuple[AgentCard, DefaultRequestHandler]


async def serve(make: Callable[[str, str], Made], *, compat: bool = False) -> None:
    """Serve until killed; print `{"http": port, "grpc": port}` when both listen.

    `make` is given the URL and the gRPC target. With `compat` A2A 0.3 is spoken on the same ports.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    http_port = listener.getsockname()[1]
    server = grpc.aio.server()
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    card, handler = make(f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}")
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    if compat:
        a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    await server.start()
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/a2a/jsonrpc", enable_v0_3_compat=compat),
        *create_rest_routes(handler, enable_v0_3_compat=compat, path_prefix="/a2a/rest"),
    ]
    print(json.dumps({"http": http_port, "grpc": grpc_port}), flush=True)
    config = uvicorn.Config(
        Starlette(routes=routes), log_level="warning", timeout_graceful_shutdown=1
    )
    await uvicorn.Server(config).serve(sockets=[listener])
    await server.stop(0)
