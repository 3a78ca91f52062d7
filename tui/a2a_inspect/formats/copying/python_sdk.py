"""A call as Python for the official SDK: a2a-sdk 1.x for the lines 1.0 and 1.1, a2a-sdk 0.3 for 0.3
and 0.2."""

from typing import Any

from a2a_inspect.formats.copying.call import CopiedCall, NotOffered
from a2a_inspect.formats.copying.literal import python_literal
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect
from a2a_proxy.protocol import rest_path
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, STREAMING_OPERATIONS
from a2a_proxy.protocol.rest_path import RestMatch

_V1_METHODS = {
    "SendMessage": "send_message",
    "SendStreamingMessage": "send_message_streaming",
    "GetTask": "get_task",
    "ListTasks": "list_tasks",
    "CancelTask": "cancel_task",
    "SubscribeToTask": "subscribe",
    "CreateTaskPushNotificationConfig": "create_task_push_notification_config",
    "GetTaskPushNotificationConfig": "get_task_push_notification_config",
    "ListTaskPushNotificationConfigs": "list_task_push_notification_configs",
    "DeleteTaskPushNotificationConfig": "delete_task_push_notification_config",
    "GetExtendedAgentCard": "get_extended_agent_card",
}
_SEND_MESSAGE_NAMES = ("MessageSendParams", "message_send_params", "SendMessageRequest")
_V03_METHODS = {
    "SendMessage": ("send_message", *_SEND_MESSAGE_NAMES),
    "SendStreamingMessage": ("send_message_streaming", *_SEND_MESSAGE_NAMES),
    "GetTask": ("get_task", "TaskQueryParams", "task_query_params", "GetTaskRequest"),
    "CancelTask": ("cancel_task", "TaskIdParams", "task_id_params", "CancelTaskRequest"),
    "SubscribeToTask": ("resubscribe", "TaskIdParams", "task_id_params", "TaskSubscriptionRequest"),
}
"""Method of the 0.3 SDK's transports, type of its parameters, converter from protobuf, protobuf
message."""
_TRANSPORTS = {
    Binding.JSONRPC: ("jsonrpc", "JsonRpcTransport"),
    Binding.REST: ("rest", "RestTransport"),
    Binding.GRPC: ("grpc", "GrpcTransport"),
}
_BOOLEANS = {"true": True, "false": False}
_TASK_ID_OPERATIONS = (
    "ListTaskPushNotificationConfigs",
    "GetTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
)
"""Operations that name the task as `taskId`, not as `id`."""


def python_program(call: CopiedCall) -> str:
    """Return a program that makes the same call with the SDK and prints the answer.

    Raises:
        NotOffered: the SDK does not support the call.
    """
    exchange = call.exchange
    if exchange.binding not in _TRANSPORTS:
        raise NotOffered("the SDK has no client for this binding")
    if exchange.dialect in (Dialect.V1_0, Dialect.V1_1):
        if exchange.operation not in _V1_METHODS:
            raise NotOffered("a2a-sdk 1.x has no method for it")
        return _program_text(call, "1.0", _V1_METHODS[exchange.operation], *_v1_request(call))
    if exchange.dialect in (Dialect.V0_3, Dialect.V0_2):
        if exchange.operation not in _V03_METHODS:
            raise NotOffered("a2a-sdk 0.3 has no method for it")
        return _program_text(call, "0.3", _V03_METHODS[exchange.operation][0], *_v03_request(call))
    raise NotOffered("there is no SDK for its dialect")


def _v1_request(call: CopiedCall) -> tuple[list[str], Any, str, str]:
    """Return imports, the request's literal, the expression that builds the request, the
    transport's arguments."""
    kind = OPERATION_BY_NAME[call.exchange.operation].request
    imports = [
        "from google.protobuf.json_format import ParseDict",
        f"from a2a.types.a2a_pb2 import {kind}",
    ]
    if call.exchange.binding is Binding.GRPC:
        transport_arguments = "channel, None"
    else:
        imports[1] = f"from a2a.types.a2a_pb2 import AgentCard, {kind}"
        transport_arguments = "http, AgentCard(), URL"
    return (
        imports,
        _request_parameters(call),
        f"ParseDict(REQUEST, {kind}(), ignore_unknown_fields=True)",
        transport_arguments,
    )


def _v03_request(call: CopiedCall) -> tuple[list[str], Any, str, str]:
    """Return as `_v1_request`, for the 0.3 line."""
    _, model, convert, message = _V03_METHODS[call.exchange.operation]
    transport_arguments = (
        "channel, None" if call.exchange.binding is Binding.GRPC else "http, url=URL"
    )
    value = _request_parameters(call)
    sends = model == "MessageSendParams"
    if call.exchange.binding is Binding.JSONRPC or (
        call.exchange.binding is Binding.REST and not sends
    ):
        return (
            [f"from a2a.types import {model}"],
            value,
            f"{model}.model_validate(REQUEST)",
            transport_arguments,
        )
    imports = [
        "from google.protobuf.json_format import ParseDict",
        "from a2a.grpc import a2a_pb2",
        "from a2a.utils.proto_utils import FromProto",
    ]
    message_expression = f"ParseDict(REQUEST, a2a_pb2.{message}(), ignore_unknown_fields=True)"
    return imports, value, f"FromProto.{convert}({message_expression})", transport_arguments


def _program_text(
    call: CopiedCall,
    sdk_version: str,
    method: str,
    imports: list[str],
    value: Any,
    request: str,
    transport_arguments: str,
) -> str:
    module, transport = _TRANSPORTS[call.exchange.binding]
    streams = call.exchange.operation in STREAMING_OPERATIONS
    grpc = call.exchange.binding is Binding.GRPC
    library = "grpc" if grpc else "httpx"
    transport_expression = (
        _channel_expression(call)
        if grpc
        else "httpx.AsyncClient(headers=HEADERS, timeout=60) as http"
    )
    headers = call.extra_headers()
    context = ""
    if grpc and sdk_version == "1.0" and headers:
        context = ", context=ClientCallContext(service_parameters=HEADERS)"
        imports = [*imports, "from a2a.client.client import ClientCallContext"]
    all_imports = [*imports, f"from a2a.client.transports.{module} import {transport}"]
    method_call = f"agent.{method}(request{context})"
    body = (
        [f"        async for event in {method_call}:", "            print(event)"]
        if streams
        else [f"        print(await {method_call})"]
    )
    return "\n".join(
        [
            (
                f'"""{call.exchange.operation} as it was recorded ({call.place}). Needs a2a-sdk '
                f'{sdk_version}."""'
            ),
            "",
            "import asyncio",
            "",
            f"import {library}",
            *sorted(all_imports),
            "",
            f"URL = {_transport_url(call, sdk_version)!r}",
            *([f"HEADERS = {python_literal(headers)}"] if not grpc or context else []),
            f"REQUEST = {python_literal(value)}",
            "",
            "",
            "async def main() -> None:",
            f"    request = {request}",
            f"    async with {transport_expression}:",
            f"        agent = {transport}({transport_arguments})",
            *body,
            "",
            "",
            "asyncio.run(main())",
            "",
        ]
    )


def _channel_expression(call: CopiedCall) -> str:
    if call.is_tls:
        return "grpc.aio.secure_channel(URL, grpc.ssl_channel_credentials()) as channel"
    return "grpc.aio.insecure_channel(URL) as channel"


def _transport_url(call: CopiedCall, sdk_version: str) -> str:
    """Return the URL of the transport's interface: for REST the part before the operation's
    path."""
    if call.exchange.binding is Binding.GRPC:
        return call.authority
    if call.exchange.binding is Binding.JSONRPC:
        return call.url + call.exchange.target
    prefix = _rest_match(call).prefix
    return call.url + (prefix.removesuffix("/v1") if sdk_version == "0.3" else prefix)


def _request_parameters(call: CopiedCall) -> dict[str, Any]:
    """Return the parameters in the form of the call's own dialect and binding.

    Raises:
        NotOffered: they were not recorded as sent.
    """
    if call.exchange.binding is Binding.REST:
        return _rest_parameters(call)
    value = call.request_value() if call.first_request().payload else {}
    if call.exchange.binding in JSONRPC_BINDINGS:
        value = value.get("params", {}) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        raise NotOffered("its parameters are not an object")
    return value


def _rest_match(call: CopiedCall) -> RestMatch:
    """Return the match of the request line; raises NotOffered if it is not a REST operation."""
    found = rest_path.match_request_line(
        call.exchange.method, call.exchange.target.encode("latin-1", "replace")
    )
    if found is None:
        raise NotOffered("its path is not an A2A path")
    return found


def _rest_parameters(call: CopiedCall) -> dict[str, Any]:
    found = _rest_match(call)
    body = call.request_value() if call.first_request().payload else {}
    if not isinstance(body, dict):
        raise NotOffered("its body is not an object")
    owner = "taskId" if call.exchange.operation in _TASK_ID_OPERATIONS or found.config_id else "id"
    if call.exchange.operation == "CreateTaskPushNotificationConfig":
        owner = "taskId"
    ids = {owner: found.task_id, "id" if owner == "taskId" else "": found.config_id}
    query: dict[str, Any] = {name: _BOOLEANS.get(value, value) for name, value in found.query}
    return {**{name: value for name, value in ids.items() if name and value}, **query, **body}
