"""Plays calls to the agents of A2A frameworks, and runs the clients of frameworks.

The programs are in `tests/peers/frameworks`. The player is no A2A client: it sends what a table
says (`support_framework_calls`), so a call can have an error on purpose, and it keeps answers as
they are.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from support_peers import PLACE, TIME, command

SECONDS = 60
_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
"""A UUID, with or without its hyphens."""
_DURATION = re.compile(r'"(duration|time_to_first_token)": [0-9.e-]+')


@dataclass(frozen=True)
class Call:
    """One HTTP request: a POST of `body`, or with no body a GET, unless `method` says otherwise.

    `$name` in path and body is replaced by what an earlier call kept under that name, `$message` by
    a new id.
    """

    operation: str
    """The operation that the recording must have for it."""
    path: str
    body: Any = None
    keep: dict[str, str] = field(default_factory=dict)
    """Names, each with the path of its value (`result.task.id`) in the answer, or in the first
    event of a stream."""
    headers: dict[str, str] = field(default_factory=dict)
    method: str = ""
    meanwhile: tuple[Call, ...] = ()
    """Made while this stream is open, when it has had `after` events."""
    after: int = 1


@dataclass(frozen=True)
class Answer:
    """The answer to a call; `said` has the events of a stream, or one document: JSON, or a text
    that is not."""

    call: Call
    status: int
    media: str
    said: list[Any]

    def shown(self) -> dict[str, Any]:
        """What the tests compare."""
        call = f"{self.call.operation} {self.call.path}"
        return {"call": call, "status": self.status, "media": self.media, "said": self.said}


class Player:
    """Makes calls to one place and keeps what was answered, in the order in which the calls
    began."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._kept: dict[str, str] = {}
        self._answers: list[Answer] = []

    async def play(self, calls: tuple[Call, ...]) -> list[Answer]:
        """The answers to these calls, each made after the one before has ended."""
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        # A connection for each: a server that fails closes its connection, but does not say so in
        # its answer.
        each_anew = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=each_anew) as session:
            for call in calls:
                await self._make(session, call)
        return self._answers

    async def _make(self, session: aiohttp.ClientSession, call: Call) -> None:
        self._kept["message"] = f"m-{len(self._answers)}"
        body = None if call.body is None else self._filled(json.dumps(call.body))
        headers = {"Accept": "application/json, text/event-stream", **call.headers}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        method = call.method or ("GET" if body is None else "POST")
        url = self._base_url + self._filled(call.path)
        async with session.request(method, url, data=body, headers=headers) as response:
            answer = Answer(call, response.status, response.content_type, [])
            self._answers.append(answer)
            if response.content_type == "text/event-stream":
                await self._follow(session, answer, response)
            else:
                answer.said.append(_read(await response.text()))
                self._keep(answer)

    async def _follow(
        self, session: aiohttp.ClientSession, answer: Answer, response: aiohttp.ClientResponse
    ) -> None:
        """Read the events of a stream; lines that are no data are left to the tests of the
        decoder."""
        async for line in response.content:
            if not line.startswith(b"data:"):
                continue
            answer.said.append(_read(line.removeprefix(b"data:").decode()))
            if len(answer.said) == 1:
                self._keep(answer)
            if len(answer.said) == answer.call.after:
                for each in answer.call.meanwhile:
                    await self._make(session, each)

    def _keep(self, answer: Answer) -> None:
        for name, path in answer.call.keep.items():
            value = answer.said[0]
            for step in path.split("."):
                value = value[step]
            self._kept[name] = value

    def _filled(self, text: str) -> str:
        for name, value in self._kept.items():
            text = text.replace(f"${name}", value)
        return text


def run_client(kind: str, base_url: str) -> list[Any]:
    """What the client of a framework (`adk --legacy`) was given, in order; RuntimeError if it
    fails."""
    name, *options = kind.split()
    line = [*command("client", name), "--base-url", base_url, *options]
    done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"the {kind} client failed: {' '.join(line)}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def anonymous(seen: list[Any]) -> list[Any]:
    """Without what differs between two runs: ids become ordinals, times and ports words, durations
    0."""
    numbers: dict[str, str] = {}
    text = TIME.sub("TIME", PLACE.sub("PLACE", json.dumps(seen, sort_keys=True)))
    text = _DURATION.sub(r'"\1": 0', text)
    found = json.loads(
        _ID.sub(lambda each: numbers.setdefault(each[0], f"id-{len(numbers)}"), text)
    )
    assert isinstance(found, list)
    return found


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def in_order(calls: tuple[Call, ...]) -> Iterator[Call]:
    """The calls and those of their `meanwhile`, as they begin."""
    for call in calls:
        yield call
        yield from in_order(call.meanwhile)
