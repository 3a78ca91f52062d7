"""The fixtures in one test suite with event loops, workers, the SDK's descriptors and other
processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support_peers import ENVIRONMENTS, require_peers

pytest_plugins = ["pytester"]

_SAMPLE = Path(__file__).parents[1] / "sample"
_TESTS = """
import subprocess, sys
from pathlib import Path

import grpc
import pytest
from concierge import Concierge
from google.protobuf import descriptor_pb2, descriptor_pool

import a2a_proto
from a2a_proto import from_dict, message_class, to_dict

# What `import a2a` does in the process of the tests.
files = descriptor_pb2.FileDescriptorSet.FromString(
    (Path(a2a_proto.__file__).parent / "v1" / "a2a.binpb").read_bytes()
)
for file in files.file:
    descriptor_pool.Default().Add(file)

METHOD = "/lf.a2a.v1.A2AService/SendStreamingMessage"
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Plan a day in Lisbon"}]}
REQUEST = from_dict("1.0", "SendMessageRequest", {"message": MESSAGE}).SerializeToString()
day = pytest.mark.a2a_cassette("day.a2a.jsonl", fail_unused=True)

def plan(raw):
    events = [to_dict(message_class("1.0", "StreamResponse").FromString(each)) for each in raw]
    updates = [each["artifactUpdate"] for each in events if "artifactUpdate" in each]
    return [each["artifact"]["parts"][0]["text"] for each in updates]

@day
@pytest.mark.asyncio
async def test_asyncio(a2a_agent):
    assert len([line async for line in Concierge(a2a_agent.url).plan_day("Lisbon")]) == 3

@day
@pytest.mark.anyio
async def test_anyio(a2a_agent, anyio_backend_name):
    assert len([line async for line in Concierge(a2a_agent.url).plan_day("Lisbon")]) == 3

@day
@pytest.mark.asyncio
async def test_aiohttp(a2a_agent, aiohttp_client):
    from aiohttp import web

    async def handle(request):
        concierge = Concierge(a2a_agent.url)
        return web.json_response([line async for line in concierge.plan_day("Lisbon")])

    app = web.Application()
    app.router.add_get("/", handle)
    client = await aiohttp_client(app)
    async with client.get("/") as answer:
        assert len(await answer.json()) == 3

@day
@pytest.mark.asyncio
async def test_grpc_aio(a2a_agent, a2a_recording):
    async with grpc.aio.insecure_channel(a2a_agent.grpc_target) as channel:
        assert len(plan([each async for each in channel.unary_stream(METHOD)(REQUEST)])) == 3
    [call] = a2a_recording.exchanges()
    assert next(call.frames()).decoded()["message"]["parts"] == [{"text": "Plan a day in Lisbon"}]

@day
def test_grpc_that_blocks(a2a_agent):
    with grpc.insecure_channel(a2a_agent.grpc_target) as channel:
        assert len(plan(channel.unary_stream(METHOD, None, None)(REQUEST, timeout=60))) == 3

@pytest.mark.a2a_cassette("table.a2a.jsonl")
def test_another_process(a2a_agent):
    code = (
        "import asyncio, sys, concierge; "
        "print(asyncio.run(concierge.Concierge(sys.argv[1]).book_table(4)))"
    )
    command = [sys.executable, "-c", code, a2a_agent.url]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout == "Table booked, 19:30, for 4\\n"

@pytest.mark.parametrize("number", range(20))
@pytest.mark.a2a_cassette("day.a2a.jsonl")
def test_the_card(a2a_agent, number):
    assert a2a_agent.card["supportedInterfaces"][0]["url"] == f"{a2a_agent.url}/rpc"

class TestNested:
    @pytest.fixture
    def a2a_config(self, a2a_config):
        return {**a2a_config, "max_age": "1s", "on_expiry": "warn"}

    @day
    def test_warns(self, a2a_agent):
        with grpc.insecure_channel(a2a_agent.grpc_target) as channel:
            assert len(plan(channel.unary_stream(METHOD, None, None)(REQUEST, timeout=60))) == 3
"""


def test_works_with_other_plugins_and_workers(pytester: pytest.Pytester) -> None:
    """In strict mode of pytest-asyncio, with fixtures of anyio and aiohttp, by two workers, the
    network blocked."""
    quick = "addopts = -p no:hypothesispytest -p no:cacheprovider"
    pytester.makeini(
        f"[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n{quick}"
    )
    cassettes = _SAMPLE / "cassettes" / "test_concierge"
    shutil.copy(_SAMPLE / "concierge.py", pytester.path / "concierge.py")
    shutil.copy(cassettes / "test_books_a_table.a2a.jsonl", pytester.path / "table.a2a.jsonl")
    shutil.copy(cassettes / "test_plans_a_day.a2a.jsonl", pytester.path / "day.a2a.jsonl")
    pytester.makepyfile(
        test_beside=_TESTS,
        conftest="""
            import pytest

            @pytest.fixture(scope="session")
            def a2a_config():
                return {"block_network": True, "allowed_hosts": ["127.0.0.1"]}

            @pytest.fixture(params=["asyncio"])
            def anyio_backend(request):
                return request.param
        """,
    )
    result = pytester.runpytest_subprocess("-n", "2", "--strict-markers")
    result.assert_outcomes(passed=27, warnings=1)
    result.stdout.fnmatch_lines(
        ["*day.a2a.jsonl was recorded * ago*", "*A2A cassettes*", "*test_the_card[[]19[]]: #2*"]
    )


_SDK = """
import grpc, httpx, pytest
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import Message, Part, Role, SendMessageRequest
from google.protobuf import descriptor_pool

@pytest.mark.a2a_cassette("day.a2a.jsonl")
@pytest.mark.parametrize("binding", ["JSONRPC", "GRPC", "HTTP+JSON"])
async def test_plans_a_day(a2a_agent, a2a_recording, binding):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, a2a_agent.url).get_agent_card()
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[binding],
        )
        client = await create_client(card, config)
        parts = [Part(text="Plan a day in Lisbon")]
        message = Message(message_id="m", role=Role.ROLE_USER, parts=parts)
        events = [each async for each in client.send_message(SendMessageRequest(message=message))]
        await client.close()
    updates = [each.artifact_update for each in events if each.HasField("artifact_update")]
    assert [each.artifact.parts[0].text for each in updates]

    [_, call] = a2a_recording.exchanges()
    request = next(call.frames())
    assert request.decoded()["message"]["parts"] == [{"text": "Plan a day in Lisbon"}]
    assert call.binding == {"JSONRPC": "jsonrpc", "GRPC": "grpc", "HTTP+JSON": "rest"}[binding]
    [task] = a2a_recording.tasks()
    assert task.state == "completed"
    known = descriptor_pool.Default().FindMessageTypeByName("lf.a2a.v1.Message")
    assert known is Message.DESCRIPTOR
"""


@pytest.mark.peers
def test_works_in_one_process_with_the_sdk(pytester: pytest.Pytester) -> None:
    """The SDK itself, both its generations of messages, in the process that decodes the recording:
    on all bindings."""
    require_peers("sdk1")
    [packages] = (ENVIRONMENTS / "sdk1").glob("lib/python*/site-packages")
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "addopts = -p no:hypothesispytest -p no:cacheprovider -p no:xdist -p no:aiohttp"
    )
    pytester.makeconftest(
        f"import sys\nsys.path.append({str(packages)!r})  # behind those of this environment"
    )
    cassettes = _SAMPLE / "cassettes" / "test_concierge"
    shutil.copy(cassettes / "test_plans_a_day.a2a.jsonl", pytester.path / "day.a2a.jsonl")
    pytester.makepyfile(_SDK)
    result = pytester.runpytest_subprocess("--strict-markers")
    result.assert_outcomes(passed=3)
