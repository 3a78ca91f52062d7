"""A call as a test that sends the same request and asserts status, errors, states and artifacts of
the recorded answer.

Values that change from run to run (ids, times, texts) are not asserted. The test uses the agent
fixture of this package's pytest plug-in, which replays a cassette or records a live agent. Over
gRPC it also needs the messages of the SDK.
"""

import inspect
import re
import shlex
from collections.abc import Iterator
from typing import Any

from a2a_inspect.formats.copying.call import CopiedCall, NotOffered
from a2a_inspect.formats.copying.literal import python_literal
from a2a_proxy.model.values import Binding
from a2a_proxy.present import text
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.schema import is_protobuf, split_schema

_SDK_PACKAGES = {"1.0": "a2a.types", "0.3": "a2a.grpc"}
"""Protocol line -> package of the SDK with its messages."""


def members(value: Any, name: str) -> Iterator[Any]:
    """Yield every value with this name in some JSON, outermost first."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for each in value.values():
            yield from members(each, name)
    if isinstance(value, list):
        for each in value:
            yield from members(each, name)


def states(answers: list[Any]) -> list[str]:
    """Return the states of the answers, without consecutive repetitions."""
    reported = [
        each["state"]
        for each in members(answers, "status")
        if isinstance(each, dict) and "state" in each
    ]
    return [state for at, state in enumerate(reported) if at == 0 or reported[at - 1] != state]


def artifacts(answers: list[Any]) -> list[str]:
    """Return the names of artifacts, in order of first appearance."""
    listed = [
        one for many in members(answers, "artifacts") if isinstance(many, list) for one in many
    ]
    names = [
        each.get("name")
        for each in [*members(answers, "artifact"), *listed]
        if isinstance(each, dict)
    ]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def errors(answers: list[Any]) -> list[Any]:
    """Return the codes of errors."""
    return [
        each["code"]
        for each in members(answers, "error")
        if isinstance(each, dict) and "code" in each
    ]


def pytest_module(call: CopiedCall) -> str:
    """Return the source of a test module.

    Raises:
        NotOffered: the call did not end, or a test cannot make it alone.
    """
    if text.outcome_of(call.exchange) not in ("ok", "error"):
        raise NotOffered("it did not end: there is nothing to assert")
    if not call.is_complete:
        raise NotOffered("it is too long")
    if call.exchange.live_payload or len(call.requests) > 1:
        raise NotOffered("a live stream is not a single call")
    make = _grpc_test_parts if call.exchange.binding is Binding.GRPC else _http_test_parts
    imports, constants, request, checks = make(call)
    helpers = "\n\n\n".join(
        inspect.getsource(each).rstrip() for each in (members, states, artifacts, errors)
    )
    name = (
        re.sub(
            r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text.exchange_title(call.exchange))
        )
        .strip("_")
        .lower()
    )
    head = f'"""{_docstring_text(call)}"""\n\n{imports}\n\n{constants}'
    test = f"def test_{name}(a2a_agent: Any) -> None:\n" + "\n".join(
        f"    {line}" for line in checks
    )
    return "\n\n\n".join((head, helpers, request, test)) + "\n"


def _docstring_text(call: CopiedCall) -> str:
    title = _escape_for_docstring(text.exchange_title(call.exchange))
    return f"""{title} as it was recorded ({call.place}, {text.binding_and_dialect(call.exchange)}).

Make its cassette, then replay it:

    pytest --a2a-record-mode=once --a2a-upstream={shlex.quote(_escape_for_docstring(call.url))}
    pytest
"""


def _escape_for_docstring(value: str) -> str:
    """Replace the characters that are special in a Python string."""
    return re.sub(r"[^ -~]|[\"\\]", "?", value)


def _assertion_lines(call: CopiedCall, answers: list[Any]) -> list[str]:
    """Return the assertions about the recorded answer.

    The tasks of a ListTasks answer are not asserted because they depend on earlier calls.
    """
    lines = [f"assert errors(answers) == {python_literal(errors(answers))}"]
    if call.exchange.operation != "ListTasks":
        lines += [f"assert states(answers) == {python_literal(states(answers))}"]
        lines += [f"assert artifacts(answers) == {python_literal(artifacts(answers))}"]
    return lines


def _http_test_parts(call: CopiedCall) -> tuple[str, str, str, list[str]]:
    imports = (
        "import json\nimport urllib.error\nimport urllib.request\n"
        "from collections.abc import Iterator\nfrom typing import Any"
    )
    answers = [decode_payload(frame.payload, frame.schema) for frame in call.responses]
    body = call.first_request().payload
    value = call.request_value() if body else None
    method = "POST" if call.exchange.binding is Binding.JSONRPC else call.exchange.method
    constants = "\n".join(
        (
            f"PATH = {call.exchange.target!r}",
            f"HEADERS = {python_literal(dict(call.list_headers()))}",
            f"REQUEST = {python_literal(value)}",
        )
    )
    data = "json.dumps(REQUEST).encode()" if body else "None"
    data_lines = r'line[5:] for line in each.split("\n") if line.startswith("data:")'
    request = f'''def ask(url: str) -> tuple[int, list[Any]]:
    """The HTTP status, and every answer as JSON."""
    request = urllib.request.Request(url + PATH, {data}, HEADERS, method={method!r})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refused:
        response = refused
    with response:
        said = [response.read().decode()]
        if response.headers.get_content_type() == "text/event-stream":
            events = said[0].replace("\\r\\n", "\\n").split("\\n\\n")
            said = ["\\n".join({data_lines}) for each in events]
        return response.status, [json.loads(each) for each in said if each]'''
    status = f"assert status == {call.exchange.status}"
    return (
        imports,
        constants,
        request,
        ["status, answers = ask(a2a_agent.url)", status, *_assertion_lines(call, answers)],
    )


def _grpc_test_parts(call: CopiedCall) -> tuple[str, str, str, list[str]]:
    frame = call.first_request()
    if not is_protobuf(frame.schema) or split_schema(frame.schema)[0] not in _SDK_PACKAGES:
        raise NotOffered("the SDK has no messages for its dialect")
    if not call.responses and call.exchange.grpc_status == 0:
        raise NotOffered("its answer was not recorded")
    module = _SDK_PACKAGES[split_schema(frame.schema)[0]]
    imports = (
        "from collections.abc import Iterator\nfrom typing import Any\n\nimport grpc\n"
        f"{'import pytest' + chr(10) if call.exchange.grpc_status > 0 else ''}"
        f"from {module} import a2a_pb2\n"
        "from google.protobuf.json_format import MessageToDict, ParseDict"
    )
    answers = [decode_payload(each.payload, each.schema) for each in call.responses]
    kind = split_schema(frame.schema)[1].rpartition(".")[2]
    metadata = [
        (name.lower(), value)
        for name, value in call.extra_headers().items()
        if name != "grpc-timeout"
    ]
    constants = "\n".join(
        (
            f"METADATA = {python_literal(metadata)}",
            f"REQUEST = {python_literal(call.request_value() if frame.payload else {})}",
        )
    )
    streams = call.exchange.operation in STREAMING_OPERATIONS
    reader = f"a2a_pb2.{_response_message_name(call)}.FromString" if call.responses else "None"
    answer_list = "list(answered)" if streams else "[answered]"
    request = f'''def ask(target: str) -> list[Any]:
    """Every answer as JSON."""
    message = ParseDict(REQUEST, a2a_pb2.{kind}(), ignore_unknown_fields=True)
    with grpc.insecure_channel(target) as channel:
        method = channel.{"unary_stream" if streams else "unary_unary"}(
            {call.exchange.target!r}, type(message).SerializeToString, {reader}
        )
        answered = method(message, metadata=METADATA, timeout=60)
        return [MessageToDict(each) for each in {answer_list}]'''
    if call.exchange.grpc_status > 0:
        name = GRPC_STATUS_NAMES[call.exchange.grpc_status]
        checks = [
            "with pytest.raises(grpc.RpcError) as refused:",
            "    ask(a2a_agent.grpc_target)",
            f"assert refused.value.code() is grpc.StatusCode.{name}",
        ]
        return imports, constants, request, checks
    return (
        imports,
        constants,
        request,
        ["answers = ask(a2a_agent.grpc_target)", *_assertion_lines(call, answers)],
    )


def _response_message_name(call: CopiedCall) -> str:
    return split_schema(call.responses[0].schema)[1].rpartition(".")[2]
