"""What the clients of frameworks share: the command line, and a log of what each call gave.
Standard library only."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any


class Log:
    """Writes what a client was given, one JSON line each: `{"call", "gave"}`, or
    `{"call", "raised"}`."""

    def __init__(self) -> None:
        self._first: dict[str, Any] = {}

    def note(self, call: str, gave: Any) -> Any:
        """Write a value, and return it."""
        self._first.setdefault(call, gave)
        self._write(call, "gave", gave)
        return gave

    def first(self, call: str) -> Any:
        """The first value that was written for this call."""
        return self._first[call]

    async def call(self, call: str, awaited: Awaitable[Any]) -> Any:
        """Write the answer or the exception; return the answer, None after an exception."""
        try:
            return self.note(call, await awaited)
        except Exception as why:
            self._write(call, "raised", f"{type(why).__name__}: {why}")
            return None

    async def stream(
        self,
        call: str,
        events: AsyncIterator[Any],
        then: Callable[[Any], Awaitable[Any]] | None = None,
    ) -> None:
        """Write each event; `then` is awaited with it while the stream is open."""
        try:
            async for event in events:
                self.note(call, event)
                if then:
                    await then(event)
        except Exception as why:
            self._write(call, "raised", f"{type(why).__name__}: {why}")

    def _write(self, call: str, kind: str, value: Any) -> None:
        print(json.dumps({"call": call, kind: value}, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    """A value that JSON does not have."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


def main(talk: Callable[[Log, str], Awaitable[None]]) -> None:
    """Run `talk` with the base URL of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True, help="where the agent's HTTP is")
    asked, _ = parser.parse_known_args()

    async def run() -> None:
        await talk(Log(), asked.base_url)

    asyncio.run(run())
