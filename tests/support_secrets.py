"""Canary secrets in every place that holds credentials, sent by a small agent and client in every
dialect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import ssl
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import grpc
import trustme
from aiohttp import web

from a2a_proto import from_dict
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.zstd import ZstdError, decompress_frame

Json = dict[str, Any]
V1, V0 = "lf.a2a.v1.A2AService", "a2a.v1.A2AService"
STREAM = {"Content-Type": "text/event-stream"}


class Canaries:
    """Creates one secret for each place, with characters that every encoding treats differently."""

    def __init__(self) -> None:
        self.at: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        """Return the secret of this place."""
        if place not in self.at:
            # No canary is part of another, and each looks generated.
            self.at[place] = f"cAn{secrets.token_hex(8)}/x+9Z"
        return self.at[place]

    def plain(self, place: str) -> str:
        """Return the same with characters that are valid anywhere in a URL."""
        if place not in self.at:
            self.at[place] = f"cAn{secrets.token_hex(10)}"
        return self.at[place]

    def host(self, place: str, domain: str = "test") -> str:
        """Return a host name of this domain, with a secret that has the form of a key."""
        if place not in self.at:
            self.at[place] = f"sk-{secrets.token_hex(12)}"
        return f"{self.at[place]}.{domain}"

    def found_in(self, data: bytes) -> list[str]:
        """Return the places whose secret is contained in these bytes, in any usual encoding."""
        return [
            place
            for place, secret in self.at.items()
            if any(trace in data for trace in traces(secret))
        ]


def traces(secret: str) -> list[bytes]:
    """Return the forms of a secret: unchanged, percent-encoded, escaped as in JSON, and in base64
    at each of its three phases."""
    raw = secret.encode()
    percent = quote(secret, safe="")
    found = [raw, percent.encode(), percent.lower().encode(), json.dumps(secret)[1:-1].encode()]
    found += [quote(secret).encode(), json.dumps(secret)[1:-1].replace("/", "\\/").encode()]
    for shift in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            whole = encode(bytes(shift) + raw)
            found.append(whole[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6])
    return found


class SecretAgent:
    """An agent that answers with secrets of its own and repeats those of the caller."""

    def __init__(self, canary: Canaries, certificate: trustme.LeafCert | None = None) -> None:
        """Create an agent that speaks TLS if it has a certificate."""
        self.canary = canary
        self.certificate = certificate
        self.http_port = self.grpc_port = 0

    async def __aenter__(self) -> SecretAgent:
        """Listen on free ports of 127.0.0.1."""
        app = web.Application()
        app.router.add_get("/.well-known/agent-card.json", self.card)
        app.router.add_get("/.well-known/agent.json", self.old_card)
        app.router.add_post("/rpc", self.rpc)
        app.router.add_post("/api/v1/a2a/{id}", self.vendor)
        app.router.add_post("/message:send", self.refuse)
        app.router.add_get("/tasks/{id}", self.break_down)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self.runner.setup()
        context = None
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.certificate.configure_cert(context)
        await web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=context).start()
        self.http_port = self.runner.addresses[0][1]
        self.grpc = grpc.aio.server()
        self.grpc.add_generic_rpc_handlers(tuple(self.services()))
        if self.certificate is None:
            self.grpc_port = self.grpc.add_insecure_port("127.0.0.1:0")
        else:
            chain = b"".join(pem.bytes() for pem in self.certificate.cert_chain_pems)
            pair = (self.certificate.private_key_pem.bytes(), chain)
            self.grpc_port = self.grpc.add_secure_port(
                "127.0.0.1:0", grpc.ssl_server_credentials([pair])
            )
        await self.grpc.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close both ports."""
        await self.grpc.stop(0.2)
        await self.runner.cleanup()

    async def card(self, request: web.Request) -> web.Response:
        """Return a card that names a header, a query parameter and a cookie of its own, and holds
        credentials."""
        named = (("header", "X-House-Pass"), ("query", "ticket"), ("cookie", "sesame"))
        schemes = {
            place: {"apiKeySecurityScheme": {"location": place, "name": name}}
            for place, name in named
        }
        where = f"http://agent:{self.canary.plain('card url user info')}@{request.host}/rpc"
        interface = {"url": where, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        card = {
            "name": "secret agent",
            "securitySchemes": schemes,
            "supportedInterfaces": [interface],
            "skills": [],
        }
        return web.json_response(
            {**card, "metadata": {"client_secret": self.canary("card client secret")}}
        )

    async def old_card(self, request: web.Request) -> web.Response:
        """Return a card of 0.1, which has a member for credentials."""
        auth = {"schemes": ["basic"], "credentials": self.canary("0.1 card credentials")}
        card = {
            "name": "old agent",
            "url": f"http://{request.host}/rpc",
            "version": "1",
            "authentication": auth,
        }
        return web.json_response({**card, "skills": [], "capabilities": {"streaming": True}})

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        """Answer JSON-RPC of every dialect."""
        call = await request.json()
        answer: Json = {"jsonrpc": "2.0", "id": call["id"]}
        match call["method"]:
            case "SendStreamingMessage" | "tasks/sendSubscribe":
                return await self.stream(request, answer, call["method"])
            case "SendMessage":
                echo = f"your key {request.headers['X-API-Key']} is not mine"
                task = {
                    "id": "t-1",
                    "contextId": "c-1",
                    "metadata": {"accessToken": self.canary("task metadata")},
                }
                task["status"] = {"state": "TASK_STATE_WORKING", "message": said(echo)}
                headers = {"Set-Cookie": f"session={self.canary('set-cookie')}; Path=/; HttpOnly"}
                headers["X-Refresh-Token"] = self.canary("response header")
                return web.json_response({**answer, "result": {"task": task}}, headers=headers)
            case "tasks/get":
                text = f"no token={quote(self.canary('JSON-RPC error text'), safe='')} is known"
                data = [
                    {
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": "TASK_NOT_FOUND",
                    }
                ]
                data[0]["metadata"] = {"token": self.canary("JSON-RPC error data")}  # type: ignore[assignment]
                return web.json_response(
                    {**answer, "error": {"code": -32001, "message": text, "data": data}}
                )
        return web.json_response({**answer, "result": call["params"]})

    async def stream(self, request: web.Request, answer: Json, method: str) -> web.StreamResponse:
        """Send two events, then an error, over SSE; in 1.0 or in 0.1."""
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        key = self.canary(f"SSE event of {method}")
        data = {"data": {"deep": [{"api-key": key}]}}
        if method == "SendStreamingMessage":
            status = {"state": "TASK_STATE_WORKING", "message": {**said("x"), "parts": [data]}}
            result: Json = {"statusUpdate": {"taskId": "t-2", "contextId": "c-2", "status": status}}
        else:
            message = {"role": "agent", "parts": [{"type": "data", **data}]}
            result = {
                "id": "t-3",
                "status": {"state": "working", "message": message},
                "final": False,
            }
        await response.write(event({**answer, "result": result}, "\r\n"))
        text = f"upstream said: Authorization: Bearer {self.canary(f'SSE error of {method}')}"
        await response.write(event({**answer, "error": {"code": -32603, "message": text}}, "\n"))
        await response.write_eof()
        return response

    async def vendor(self, request: web.Request) -> web.StreamResponse:
        """Answer in the vendor dialect, with an error at the end that repeats the key."""
        call = await request.json()
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        progress = {
            "current": 1,
            "total": 2,
            "message": f"with x-api-key: {self.canary('vendor progress')}",
        }
        status = {"state": "working", "progress": progress}
        await response.write(
            event({**answer, "result": {"id": "t-4", "status": status, "final": False}}, "\n")
        )
        details = f"key {request.headers['x-api-key']} has expired"
        error = {"code": -32000, "message": "failed", "data": {"taskId": "t-4", "details": details}}
        await response.write(event({**answer, "error": error}, "\n"))
        await response.write_eof()
        return response

    async def refuse(self, request: web.Request) -> web.Response:
        """Send a REST error with details."""
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNAUTHENTICATED"}
        info["metadata"] = {"refresh_token": self.canary("REST error details")}  # type: ignore[assignment]
        text = f"password: {self.canary('REST error text')} was refused"
        error = {"code": 401, "status": "UNAUTHENTICATED", "message": text, "details": [info]}
        challenge = {"WWW-Authenticate": 'Basic realm="house"'}
        return web.json_response({"error": error}, status=401, headers=challenge)

    async def break_down(self, request: web.Request) -> web.Response:
        """Send an HTTP error in plain text."""
        return web.Response(
            status=500, text=f"config: db_password={self.canary('HTTP error text')}; giving up"
        )

    def services(self) -> list[Any]:
        """Return the gRPC services of 1.0 and 0.3."""
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        v1 = {
            "SendMessage": unary(self.grpc_send),
            "SendStreamingMessage": stream(self.grpc_stream),
            "CreateTaskPushNotificationConfig": unary(self.grpc_echo),
        }
        v0 = {"CreateTaskPushNotificationConfig": unary(self.grpc_echo_config)}
        return [
            grpc.method_handlers_generic_handler(V1, v1),
            grpc.method_handlers_generic_handler(V0, v0),
        ]

    async def grpc_send(self, request: bytes, context: Any) -> bytes:
        """Return a task with a secret in its metadata."""
        await context.send_initial_metadata(
            (("x-session-token", self.canary("gRPC initial metadata")),)
        )
        task = {"id": "t-5", "contextId": "c-5", "status": {"state": "TASK_STATE_COMPLETED"}}
        metadata = {"deep": {"secret": self.canary("protobuf struct")}}
        return encode_message(
            "1.0", "SendMessageResponse", {"task": {**task, "metadata": metadata}}
        )

    async def grpc_stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Yield an artifact with a secret, then a status with three more."""
        part = {"data": {"password": self.canary("protobuf data part")}}
        artifact = {
            "artifactId": "a",
            "parts": [part, {"text": f"see token={self.canary('protobuf text')}"}],
        }
        yield encode_message(
            "1.0", "StreamResponse", {"artifactUpdate": {"taskId": "t-6", "artifact": artifact}}
        )
        details = status_details(self.canary("grpc-status-details-bin"))
        refresh = self.canary("trailer")
        context.set_trailing_metadata(
            (("grpc-status-details-bin", details), ("x-refresh-token", refresh))
        )
        bearer = self.canary("grpc-message")
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, f"bad credential: Bearer {bearer}")

    async def grpc_echo(self, request: bytes, context: Any) -> bytes:
        """Return the request, which is also the answer in 1.0."""
        return request

    async def grpc_echo_config(self, request: bytes, context: Any) -> bytes:
        """Return the answer of 0.3, which is a message of its own."""
        return encode_message(
            "0.3", "TaskPushNotificationConfig", self.old_config("0.3 protobuf answer")
        )

    def old_config(self, place: str) -> Json:
        """Return a push configuration of the 0.3 protobuf form."""
        auth = {"schemes": ["Bearer"], "credentials": self.canary(f"{place} credentials")}
        config = {
            "id": "h",
            "url": "http://hook/",
            "token": self.canary(f"{place} token"),
            "authentication": auth,
        }
        return {"name": "tasks/t-7/pushNotificationConfigs/h", "pushNotificationConfig": config}


class SecretClient:
    """A client that makes every call, with secrets in every place of a request."""

    def __init__(
        self, canary: Canaries, address: str, grpc_address: str = "", way: Forwarded | None = None
    ) -> None:
        """Create a client of `address`, and of `grpc_address` if gRPC has another one; over TLS in
        tunnels of a forward proxy if `way` is given."""
        self.canary, self.address, self.way = canary, address, way
        self.grpc_address = grpc_address or address
        self.numbers = iter(range(1, 100))

    async def run(self) -> None:
        """Make all calls, one after another."""
        scheme, options = ("http", {}) if self.way is None else ("https", self.way.http_options())
        async with aiohttp.ClientSession(f"{scheme}://{self.address}", **options) as self.http:
            await self.cards()
            await self.json_rpc()
            await self.rest()
            await self.old()
        if self.way is None:
            channel = grpc.aio.insecure_channel(self.grpc_address)
        else:
            channel = self.way.grpc_channel(self.grpc_address)
        async with channel:
            await self.grpc(channel)

    async def get(self, path: str, **headers: str) -> None:
        """Send a GET and read the response to its end."""
        async with self.http.get(path, headers=names(headers)) as response:
            await response.read()

    async def post(self, path: str, body: Json, **headers: str) -> None:
        """Send a POST of JSON and read the response to its end."""
        async with self.http.post(path, json=body, headers=names(headers)) as response:
            await response.read()

    async def call(self, method: str, params: Json, path: str = "/rpc", **headers: str) -> None:
        """Make a JSON-RPC call."""
        body = {
            "jsonrpc": "2.0",
            "id": f"r-{next(self.numbers)}",
            "method": method,
            "params": params,
        }
        await self.post(path, body, **headers)

    async def cards(self) -> None:
        """Fetch both cards; the extended card needs credentials."""
        await self.get(
            "/.well-known/agent-card.json",
            Authorization=f"Bearer {self.canary('card authorization')}",
        )
        await self.get("/.well-known/agent.json")

    async def json_rpc(self) -> None:
        """Call 1.0 with credentials in headers, query and body, also under the names in the
        card."""
        canary = self.canary
        query = (
            f"?api_key={quote(canary('query key'), safe='')}"
            f"&ticket={quote(canary('card query'), safe='')}&page=2"
        )
        headers = {
            "Authorization": f"Bearer {canary('authorization')}",
            "Proxy_Authorization": f"Basic {canary('proxy-authorization')}",
            "Cookie": f"theme=dark; sid={canary('cookie')}; sesame={canary('card cookie')}",
            "X_API_Key": canary("x-api-key"),
            "X_House_Pass": canary("card header"),
            "Referer": (
                f"http://me:{canary.plain('referer user info')}@host/"
                f"?token={canary.plain('referer query')}"
            ),
        }
        params = {"message": said("hello"), "metadata": {"password": canary("request metadata")}}
        config = {"taskPushNotificationConfig": self.push("send")}
        await self.call(
            "SendMessage", {**params, "configuration": config}, "/rpc" + query, **headers
        )
        await self.call("SendStreamingMessage", {"message": said("hello again")})
        await self.call(
            "CreateTaskPushNotificationConfig", {"taskId": "t-1", **self.push("create")}
        )

    def push(self, place: str) -> Json:
        """Return a push configuration of 1.0."""
        canary = self.canary
        user, token = (
            canary.plain(f"{place} push url user info"),
            canary.plain(f"{place} push url query"),
        )
        auth = {"scheme": "Bearer", "credentials": canary(f"{place} push credentials")}
        url = f"https://hook:{user}@hooks.example/a2a?token={token}"
        return {
            "id": "h",
            "url": url,
            "token": canary(f"{place} push token"),
            "authentication": auth,
        }

    def old_push(self, place: str) -> Json:
        """Return a push configuration of 0.x."""
        auth = {"schemes": ["Bearer"], "credentials": self.canary(f"{place} push credentials")}
        return {
            "url": "http://hook/",
            "token": self.canary(f"{place} push token"),
            "authentication": auth,
        }

    async def rest(self) -> None:
        """Make REST calls that are refused."""
        basic = b64encode(f"user:{self.canary('basic password')}".encode()).decode()
        body = {"message": said(f"my apiKey={self.canary('message text')} please")}
        await self.post("/message:send", body, Authorization=f"Basic {basic}", A2A_Version="1.0")
        token = quote(self.canary("REST query"), safe="")
        await self.get(f"/tasks/t-1?access_token={token}&historyLength=2", A2A_Version="1.0")

    async def old(self) -> None:
        """Call 0.3, 0.2, 0.1 and the vendor dialect."""
        message = {
            "kind": "message",
            "role": "user",
            "messageId": "m-9",
            "parts": [{"kind": "text", "text": "x"}],
        }
        configuration = {"pushNotificationConfig": self.old_push("0.3 send")}
        await self.call("message/send", {"message": message, "configuration": configuration})
        push = {"taskId": "t-1", "pushNotificationConfig": self.old_push("0.2 set")}
        await self.call("tasks/pushNotificationConfig/set", push)
        await self.call(
            "tasks/get", {"id": "t-1"}, X_A2A_Notification_Token=self.canary("notification token")
        )
        oldest = {"role": "user", "parts": [{"type": "text", "text": "x"}]}
        params = {"id": "t-3", "message": oldest, "pushNotification": self.old_push("0.1 send")}
        await self.call("tasks/sendSubscribe", params)
        vendor = {"message": {**oldest, "messageId": "m-10"}}
        key = self.canary("vendor key")
        await self.call(
            "message/stream", vendor, "/api/v1/a2a/a-1", x_api_key=key, Accept="text/event-stream"
        )

    async def grpc(self, channel: Any) -> None:
        """Make calls of 1.0 and 0.3, with text and binary metadata."""
        canary = self.canary
        metadata = (
            ("authorization", f"Bearer {canary('gRPC authorization')}"),
            ("x-api-key", canary("gRPC key")),
            ("x-house-pass", canary("gRPC card header")),
            ("x-session-token-bin", b"\x00\xff" + canary("gRPC binary metadata").encode()),
            ("a2a-version", "1.0"),
        )
        config = {"taskPushNotificationConfig": self.push("gRPC send")}
        send = encode_message(
            "1.0", "SendMessageRequest", {"message": said("x"), "configuration": config}
        )
        await channel.unary_unary(f"/{V1}/SendMessage")(send, metadata=metadata)
        try:
            async for _ in channel.unary_stream(f"/{V1}/SendStreamingMessage")(
                send, metadata=metadata[:1]
            ):
                pass
        except grpc.aio.AioRpcError:
            pass
        push = {"taskId": "t-5", **self.push("gRPC create")}
        create = encode_message("1.0", "TaskPushNotificationConfig", push)
        await channel.unary_unary(f"/{V1}/CreateTaskPushNotificationConfig")(create)
        auth = {"schemes": ["Bearer"], "credentials": canary("0.3 protobuf credentials")}
        inner = {
            "id": "h",
            "url": "http://hook/",
            "token": canary("0.3 protobuf token"),
            "authentication": auth,
        }
        old = {
            "parent": "tasks/t-7",
            "configId": "h",
            "config": {"name": "n", "pushNotificationConfig": inner},
        }
        create = encode_message("0.3", "CreateTaskPushNotificationConfigRequest", old)
        await channel.unary_unary(f"/{V0}/CreateTaskPushNotificationConfig")(create)


class Forwarded:
    """The forward proxy of a client that gives it credentials, and the authority that the client
    trusts."""

    def __init__(self, canary: Canaries, address: str, authority: str) -> None:
        """Create the way through the forward proxy at `address`; `authority` is PEM."""
        self.address, self.authority = address, authority
        self.password = canary.plain("Proxy-Authorization")

    def http_options(self) -> Json:
        """Return options of an aiohttp session."""
        context = ssl.create_default_context(cadata=self.authority)
        proxy = f"http://user:{self.password}@{self.address}"
        return {"proxy": proxy, "connector": aiohttp.TCPConnector(ssl=context)}

    def grpc_channel(self, address: str) -> grpc.aio.Channel:
        """Return a channel to this address."""
        credentials = grpc.ssl_channel_credentials(self.authority.encode())
        proxy = f"http://user:{self.password}@{self.address}"
        return grpc.aio.secure_channel(address, credentials, options=(("grpc.http_proxy", proxy),))

    async def send(self, data: bytes, *, ends: bool = True) -> bytes:
        """Return the answer to bytes on a connection of its own, followed by FIN if `ends`."""
        reader, writer = await asyncio.open_connection(*self.address.split(":"))
        writer.write(data)
        if ends:
            writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    async def ask(self, target: str) -> bytes:
        """Return the answer to a request in absolute form with credentials for the proxy."""
        basic = b64encode(f"user:{self.password}".encode()).decode()
        host = target.split("/")[2]
        head = (
            f"GET {target} HTTP/1.1\r\nHost: {host}\r\n"
            f"Proxy-Authorization: Basic {basic}\r\nConnection: close\r\n"
        )
        return await self.send(f"{head}\r\n".encode(), ends=False)


class OtherProxy:
    """An HTTP proxy for `--upstream-proxy`, which knows all names as this machine."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        """What it was asked."""

    async def __aenter__(self) -> OtherProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            port = int(head.split()[1].rpartition(b":")[2])
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
            far_writer.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


CALLS = 16
"""Number of exchanges that the client makes."""


def names(headers: dict[str, str]) -> dict[str, str]:
    """Return field names that are keywords of Python."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def said(text: str) -> Json:
    """Return a message of 1.0."""
    return {
        "messageId": f"m-{secrets.token_hex(3)}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
    }


def event(value: Json, end: str) -> bytes:
    """Return one SSE event."""
    return f"data: {json.dumps(value)}{end}{end}".encode()


def encode_message(line: Any, name: str, value: Json) -> bytes:
    """Return a protobuf message."""
    return from_dict(line, name, value).SerializeToString()


def status_details(token: str) -> bytes:
    """Return a google.rpc.Status with an ErrorInfo whose metadata holds a token."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNAUTHENTICATED"}
    return encode_message(
        "rpc",
        "Status",
        {"code": 16, "message": "refused", "details": [{**info, "metadata": {"token": token}}]},
    )


def everything(path: Path) -> bytes:
    """Return all values of all rows of a recording, decompressed if they are compressed, and all
    payloads."""
    found: list[bytes] = []
    with Recording(path) as recording:
        tables = [
            name
            for (name,) in recording.db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'"
            )
        ]
        for table in tables:
            for row in recording.db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    found += stored(value)
        for row in recording.frames_after(0):
            found += [row.frame.payload, recording.read_payload(row), repr(row.frame).encode()]
        for exchange in recording.read_exchanges():
            found.append(repr(exchange).encode())
    return b"\n".join(found)


def stored(value: object) -> list[bytes]:
    """Return a value as bytes, and decompressed if possible."""
    if not isinstance(value, bytes):
        return [str(value).encode()]
    try:
        return [value, decompress_frame(value, 64 << 20)]
    except ZstdError:
        return [value]
