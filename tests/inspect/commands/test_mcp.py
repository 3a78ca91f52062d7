"""The MCP server, driven by the client of the MCP SDK."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from support_cli import environment, program

RECORDINGS = Path(__file__).parents[3] / "recordings"
LOSSY, DEMO = RECORDINGS / "lossy.a2a.jsonl", RECORDINGS / "demo.a2a.jsonl"


@contextlib.asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Client]:
    """Yield a client of a server that may open two recordings."""
    server = StdioServerParameters(
        command=program("a2a-inspect"), args=["mcp", str(LOSSY), str(DEMO)], env=environment(folder)
    )
    async with Client(server) as client:
        yield client


async def call(client: Client, tool: str, **arguments: object) -> tuple[bool, str]:
    """Return whether the call failed, and the text of its answer."""
    done = await client.call_tool(tool, arguments)
    (content,) = done.content
    assert isinstance(content, TextContent)
    return bool(done.is_error), content.text


async def test_an_assistant_finds_the_lost_event(tmp_path: Path) -> None:
    """From the list of recordings to the rule, with nine tools that only read."""
    lossy = {"recording": LOSSY.name}
    async with connected(tmp_path) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            *("recordings", "ls", "show", "why", "check"),
            *("segments", "lanes", "diff", "rules"),
        ]
        assert all(
            tool.annotations is not None and tool.annotations.read_only_hint for tool in tools
        )
        failed, text = await call(client, "recordings")
        assert not failed
        assert [line for line in text.splitlines() if not line.startswith(" ")] == [
            LOSSY.name,
            DEMO.name,
        ]
        failed, text = await call(client, "check", **lossy)
        assert not failed
        assert text.startswith("Recorded traffic, untrusted data:\n")
        assert "generation 4 is missing" in text
        for tool, arguments, words in (
            ("ls", lossy | {"filter": "gap"}, "SendStreamingMessage"),
            ("show", lossy | {"place": "8", "payloads": True}, "[generation 5]"),
            ("why", lossy | {"place": "8"}, "nothing shows that it did not end well"),
            ("lanes", lossy | {"place": "8"}, "generation 4 missed, healed by #9 GetTask"),
            ("segments", lossy, "agent"),
            ("rules", {"rule": "GEN-001"}, "Generation gap"),
            ("diff", lossy | {"left": "2", "right": "8"}, "artifact"),
            ("diff", {"left": DEMO.name, "right": LOSSY.name}, "lossy"),
        ):
            failed, text = await call(client, tool, **arguments)
            assert (failed, words in text) == (False, True), text


async def test_a_long_answer_has_pages(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        first, second = [(await call(client, "rules", page=page))[1] for page in (1, 2)]
    assert first.endswith("(more: page=2)")
    assert len(first) < 8_200
    assert second.splitlines()[2] not in first


async def test_other_files_and_wrong_words_are_refused(tmp_path: Path) -> None:
    demo = {"recording": DEMO.name}
    async with connected(tmp_path) as client:
        for tool, arguments, error in (
            ("ls", {"recording": "/etc/passwd"}, "there is no recording /etc/passwd"),
            (
                "ls",
                {"recording": "three-agents.a2a.jsonl"},
                "there is no recording three-agents.a2a.jsonl",
            ),
            ("show", demo | {"place": "--json"}, "--json is not a place"),
            ("show", demo | {"place": "/etc/passwd"}, "/etc/passwd is not a place"),
            ("diff", demo | {"left": "1", "right": "/etc/passwd"}, "/etc/passwd is not a place"),
            ("rules", {"rule": "--markdown"}, "--markdown is not a place"),
            ("ls", demo | {"filter": "tsak:1"}, "tsak"),
            ("show", demo | {"place": "99"}, "has no exchange 99"),
            ("rules", {"page": 1000}, "there is no such page"),
        ):
            failed, text = await call(client, tool, **arguments)
            assert (failed, error in text) == (True, True), text
