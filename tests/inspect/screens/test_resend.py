"""A call sent again from the screen: confirmation, edit, answer, further messages, difference."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data.sendable_call import make_send_command, read_sendable_call
from a2a_inspect.screens import send_screen
from a2a_inspect.screens.diff_screen import DiffScreen
from a2a_inspect.screens.send_screen import SendScreen
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.recording.read.reader import Recording
from support_drive import SAMPLES, Ports, demo_agent, live_agent
from support_inspect import changes, exchange, request, sample, writer
from support_recording import STARTED
from support_relay import agent as serving
from support_screen import Person, looking


@pytest.fixture(scope="module")
def agent() -> Iterator[Ports]:
    with demo_agent() as ports:
        yield ports


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "300")  # of the output of a child, not of the screen


def recorded(folder: Path, name: str = "demo") -> Path:
    path = folder / "recorded.a2a.db"
    read_cassette(SAMPLES / f"{name}.a2a.jsonl", path)
    return path


def sent_requests(folder: Path) -> list[Any]:
    """Return the decoded requests of the newest recording that a child made."""
    (path,) = (folder / "state" / "recordings").glob("*.a2a.db")
    with Recording(path) as recording:
        (row,) = recording.read_exchanges()
        frames = [
            each.frame
            for each in recording.read_frames(row.key)
            if each.frame.direction.name == "TO_AGENT"
        ]
        return [decode_payload(frame.payload, frame.schema) for frame in frames if frame.payload]


async def choose_agent(person: Person, address: str) -> None:
    """Name the agent of the menu that is open."""
    await person.types("a")
    await person.sees("HOST:PORT or a URL")
    await person.writes(address)
    await person.types("enter")
    await person.sees(f"to {address}")


async def test_a_call_is_sent_after_a_confirmation_that_names_the_agent(
    tmp_path: Path, agent: Ports
) -> None:
    """Nothing is sent before; the answer is shown, and compared with the recorded one."""
    path = recorded(tmp_path)
    address = f"127.0.0.1:{agent.http}"
    async with looking(path) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "j", "j", "S")
        with Recording(path) as recording:
            upstream = next(recording.read_connections()).connection.upstream
        await person.sees(
            "Send again",
            "#3 SendMessage  rest 1.0",
            f"send it as it was to {upstream}",
            "books the table",
        )
        await person.types("escape")
        assert not list((tmp_path / "state").rglob("*.a2a.db"))
        await person.types("S")
        await person.sees("Send again")
        await choose_agent(person, address)
        await person.types("s")
        await person.sees(
            f"to {address}", "<-- message 1, ", '"state": "TASK_STATE_INPUT_REQUIRED"', "answered"
        )
        await person.sees("show it: a2a-inspect show")
        assert isinstance(person.app.screen, SendScreen)
        await person.types("D")
        await person.until(lambda: isinstance(person.app.screen, DiffScreen), "the difference")
        await person.sees("recorded.a2a.db #3  |  a2a-", "same")
        await person.types("escape", "escape")
        await person.sees("OPERATION")
    (request,) = sent_requests(tmp_path)
    assert request["message"]["parts"][0]["text"]


async def test_messages_of_a_stream_are_shown_as_they_come(tmp_path: Path) -> None:
    """The first is shown while the agent holds back the last; leaving the screen ends the call."""
    released = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        )
        for state in ("WORKING", "COMPLETED"):
            task = {"id": "t1", "contextId": "c1", "status": {"state": f"TASK_STATE_{state}"}}
            event = {"jsonrpc": "2.0", "id": 1, "result": {"task": task}}
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
            await released.wait()
        writer.close()

    async with serving(answer) as port, looking(recorded(tmp_path)) as person:
        await person.sees("OPERATION")
        for is_left in (False, True):
            released.clear()
            await person.types("g", "g", "j", "S")
            await person.sees("#2 SendStreamingMessage")
            await choose_agent(person, f"127.0.0.1:{port}")
            await person.types("s")
            await person.sees("<-- message 1, ", "TASK_STATE_WORKING")
            screen = person.app.screen
            assert isinstance(screen, SendScreen)
            assert (screen._message_count, screen._has_ended) == (1, False)
            if not is_left:
                released.set()
                await person.sees("<-- message 2, ", "TASK_STATE_COMPLETED", "answered")
            await person.types("escape")
            await person.sees("OPERATION")
        process = screen._process
        assert process is not None
        await person.until(lambda: process.returncode is not None, "the end of the command")
        released.set()


async def send_with(person: Person, monkeypatch: pytest.MonkeyPatch, script: str) -> SendScreen:
    """Send a call with a script in place of the command; return the screen."""
    monkeypatch.setattr(send_screen, "make_send_command", lambda *_: [sys.executable, "-c", script])
    await person.sees("OPERATION")
    await person.types("S")
    await person.sees("Send again")
    await person.types("s")
    await person.until(lambda: isinstance(person.app.screen, SendScreen), "the answer")
    assert isinstance(person.app.screen, SendScreen)
    return person.app.screen


async def test_the_end_of_a_long_answer_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest lines, and the newest line of any length; the number of dropped ones is shown."""
    monkeypatch.setattr(send_screen, "_MAX_LINES", 50)
    monkeypatch.setattr(send_screen, "_MAX_CHARACTERS", 3000)
    async with looking(recorded(tmp_path)) as person:
        screen = await send_with(person, monkeypatch, "for each in range(100): print(f'[{each}]')")
        await person.until(lambda: screen._has_ended, "the end")
        assert len(screen._lines) == 50  # each message has a title and three lines
        await person.types("home")
        await person.sees("350 earlier lines not shown; the recording has all of them")
        await person.types("end")
        await person.sees("<-- message 100, ", "99")
        await person.types("escape")
        screen = await send_with(person, monkeypatch, "print('x' * 4000)")
        await person.until(lambda: screen._has_ended, "the end")
        assert list(screen._lines) == ["x" * 4000]


async def test_the_output_of_the_command_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said on the screen, and the command ends."""

    async def break_off(_stream: asyncio.StreamReader) -> AsyncIterator[str]:
        raise OSError("the pipe is broken")
        yield ""

    monkeypatch.setattr(send_screen, "_iter_lines", break_off)
    async with looking(recorded(tmp_path)) as person:
        screen = await send_with(person, monkeypatch, "import time; time.sleep(1000)")
        await person.sees("cannot read the output of a2a-proxy send: the pipe is broken", "ended")
        assert screen._process is not None
        assert screen._process.returncode is not None


async def test_a_huge_line_is_read_in_linear_time() -> None:
    """A line of 64 MB comes in a thousand pieces; lines around it are complete."""
    stream = asyncio.StreamReader()
    stream.feed_data(b"first\n" + b"x" * 64_000_000 + b"\nlast")
    stream.feed_eof()
    started = time.process_time()
    lengths = [len(line) async for line in send_screen._iter_lines(stream)]
    assert lengths == [5, 64_000_000, 4]
    assert time.process_time() - started < 3


async def test_the_request_is_edited(
    tmp_path: Path, agent: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the user's editor; an edit that is not valid is refused by the command, and kept for the
    next attempt."""
    script = tmp_path / "editor.py"
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    edit = (
        "import json, os, sys, time\n"
        "value = json.load(open(sys.argv[1]))\n"
        "value['message']['parts'][0]['text'] = {text}\n"
        "json.dump(value, open(sys.argv[1], 'w'))\n"
        "os.utime(sys.argv[1], (time.time() + 9, time.time() + 9))\n"
    )
    async with looking(recorded(tmp_path)) as person:
        monkeypatch.setattr(person.app, "suspend", contextlib.nullcontext)
        await person.sees("OPERATION")
        await person.types("g", "g", "j", "j", "S")
        await choose_agent(person, f"127.0.0.1:{agent.http}")
        for text, outcome in (
            ("3", "is not valid"),
            ("value['message']['parts'][0]['text'] + 39", "answered"),
        ):
            script.write_text(
                edit.format(text=text if outcome == "is not valid" else f"str({text})")
            )
            await person.types("e")
            await person.sees("send the edited request to", "edit the request again")
            await person.types("s")
            await person.sees(outcome)
            await person.types("escape")
            await person.sees("OPERATION")
            if outcome != "answered":
                await person.types("S")
                await choose_agent(person, f"127.0.0.1:{agent.http}")
        script.write_text("")
        await person.types("S")
        await person.sees("Send again")
        await person.types("e")
        await person.await_notice("the editor saved nothing")
        monkeypatch.setenv("VISUAL", "no-such-editor-here")
        await person.types("e")
        await person.await_notice("the editor failed")
    (request,) = sent_requests(tmp_path)
    assert request["message"]["parts"][0]["text"] == "42"


async def test_no_editor_can_be_opened(tmp_path: Path) -> None:
    """In a browser, and in a test: the command for a terminal is named."""
    async with looking(recorded(tmp_path)) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "j", "j", "S")
        await person.sees("Send again")
        await person.types("e")
        await person.await_notice(f"a2a-proxy send {tmp_path / 'recorded.a2a.db'} 1:3 -u ")


async def test_typed_lines_are_further_messages_of_a_live_call(tmp_path: Path) -> None:
    """An empty line ends the client's stream."""
    with live_agent() as port:
        async with looking(recorded(tmp_path, "live-bidi")) as person:
            await person.sees("OPERATION")
            await person.types("g", "g", "j", "S")
            await person.sees("SendLiveMessage")
            await choose_agent(person, f"127.0.0.1:{port}")
            await person.types("s")
            await person.sees("<-- message 3, ", "an empty line ends")
            await person.writes("one more")
            await person.types("enter")
            await person.sees("--> one more", "<-- message 4, ")
            await person.types("enter")
            await person.sees("TASK_STATE_COMPLETED", "answered")
    assert sent_requests(tmp_path)[-1]["message"]["parts"] == [{"text": "one more"}]


async def test_a_screen_that_cannot_send_says_so(tmp_path: Path) -> None:
    """A read-only screen, and several recordings as one."""
    async with looking(sample(tmp_path / "r.db")) as person:
        await person.sees("OPERATION")
        person.app.read_only = True
        await person.types("S")
        await person.await_notice("read-only: no call is sent")
        person.app._source.files = ("a", "b")
        await person.types("S")
        await person.await_notice("open a single one to send a call")


def test_calls_that_cannot_be_sent(tmp_path: Path) -> None:
    """With the reason of `a2a-proxy send`; an agent card has no request that can be edited."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1, binding=Binding.WEBHOOK)))
    made.finish(STARTED)
    with Recording(tmp_path / "r.db") as recording:
        (row,) = recording.read_exchanges()
        found = read_sendable_call(recording, row.key)
        assert found == "#1 SendStreamingMessage cannot be sent: a webhook, which the agent sends"
        assert read_sendable_call(recording, 10**9) == "the call is no longer in the recording"
    with open_recording_or_cassette(SAMPLES / "demo.a2a.jsonl") as recording:
        card = next(
            row for row in recording.read_exchanges() if row.exchange.operation == "GetAgentCard"
        )
        fetched = read_sendable_call(recording, card.key)
    assert not isinstance(fetched, str)
    assert fetched.request == ""


def test_the_command_of_a_stdio_agent() -> None:
    """Its words follow `--`."""
    with open_recording_or_cassette(SAMPLES / "stdio.a2a.jsonl") as recording:
        row = list(recording.read_exchanges())[1]
        call = read_sendable_call(recording, row.key)
    assert not isinstance(call, str)
    assert (call.is_stdio, json.loads(call.request) is not None) == (True, True)
    words = make_send_command(
        Path("/r.db"), call, "python 'my agent.py'", Path("/new.db"), Path("/q.json")
    )
    assert words[4:] == [
        *(
            "send",
            "--record",
            "/new.db",
            "--request",
            "/q.json",
            "/r.db",
            "1:2",
            "--",
            "python",
            "my agent.py",
        )
    ]
    with pytest.raises(ValueError, match="No closing quotation"):
        make_send_command(Path("/r.db"), call, "python 'my", Path("/new.db"), None)
