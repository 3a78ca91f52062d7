"""The command line of a2a-handler, which calls an agent over the binding that its card names first.

Every command is run as from a shell, but in this process. With `--push-url` the only call is a
message that registers this webhook.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import uuid
from typing import Any

HOME = tempfile.TemporaryDirectory()
os.environ["HOME"] = HOME.name  # before the import, which finds the folder of its settings

from a2a_handler.cli import cli  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from playing import Log, main  # noqa: E402

UNKNOWN = "00000000-0000-4000-8000-000000000000"
WEBHOOK = ("--webhook-url", "http://127.0.0.1:9/hook", "--token", "push-token-1")


class Handler:
    """The command line, for one agent."""

    def __init__(self, log: Log, base_url: str) -> None:
        self._log = log
        self._base_url = base_url

    async def run(self, name: str, command: str, *words: str) -> list[Any]:
        """Write what the command prints, and return its JSON lines; an error is a JSON line on
        stderr."""
        line = ["--output", "ndjson", *command.split(), "--url", self._base_url, *words]
        result = await asyncio.to_thread(CliRunner().invoke, cli, line)
        lines = [json.loads(each) for each in result.stdout.splitlines()]
        errors = [json.loads(each) for each in result.stderr.splitlines() if each.startswith("{")]
        self._log.note(name, {"exit": result.exit_code, "lines": lines, "errors": errors})
        return lines

    async def say(self, name: str, text: str, *words: str) -> str:
        """Send a text and return the id of the task."""
        (answer,) = await self.run(name, "message send", "--text", text, *words)
        return str(answer.get("id", ""))


async def talk(log: Log, base_url: str) -> None:
    """Call each operation, and each with a task that does not exist or has ended."""
    handler = Handler(log, base_url)
    if "--push-url" in sys.argv:
        url = sys.argv[sys.argv.index("--push-url") + 1]
        await handler.run(
            "notified",
            "message stream",
            "--text",
            "stream",
            "--push-url",
            url,
            "--push-token",
            "secret",
        )
        return
    await handler.run("card", "card get")
    await handler.run("extended card", "card get", "--extended")
    here = ("--context-id", str(uuid.uuid4()))
    done = await handler.say("send", "unary", "--data", '{"rows": [1, 2]}', *here)
    await handler.run("stream", "message stream", "--text", "stream")
    await handler.run("parts", "message stream", "--text", "parts")
    asked = await handler.say("ask", "input")
    await handler.run("answer", "message stream", "--text", "blue", "--task-id", asked)
    await handler.say("message", "message")
    await handler.say("fail", "fail", *here)
    long = await handler.say("long", "long", "--no-wait")
    await asyncio.sleep(0.5)  # until the agent has said that it works
    for name in ("cancel", "cancel again"):
        await handler.run(name, "task cancel", long)
    await handler.run("get", "task get", done, "--history-length", "1")
    await handler.run("list", "task list", "--page-size", "1", *here)
    await handler.run("set webhook", "task notification set", asked, *WEBHOOK)
    for name in ("get webhook", "list webhooks"):
        await handler.run(name, f"task notification {name.split()[0]}", asked)
    await handler.run("remove webhook", "task notification remove", asked, "--config-id", asked)
    await handler.run("get unknown", "task get", UNKNOWN)
    await handler.run("cancel unknown", "task cancel", UNKNOWN)
    await handler.run("subscribe", "task resubscribe", done)
    await handler.run("list webhooks of unknown", "task notification list", UNKNOWN)


if __name__ == "__main__":
    main(talk)
