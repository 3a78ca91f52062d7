"""Known extensions in the commands and on the screen; `a2a-inspect plugins`; the example of the
manual."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data.frame_summary import summarize_frame
from a2a_inspect.widgets.facts import extension_lines
from a2a_proxy.hooks.extensions import EXTENSION_GROUP
from a2a_proxy.model.values import EventKind, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.extensions.registry import BUILT_IN
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_cli import run
from support_extensions import LATENCY_URI, SURFACE, status
from support_hooks import install
from support_inspect import MS, changes, exchange, frame, writer
from support_recording import STARTED
from support_screen import looking

_PAGE = (Path(__file__).parents[3] / "proxy/a2a_proxy/manual/extensions.md").read_text()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A call whose message has a parcel; its first event an interface of A2UI, its second a
    latency."""
    message = {
        "messageId": "m1",
        "role": "ROLE_USER",
        "parts": [{"data": {"courier.parcel": {"id": 4711, "to": "Lyon"}}}],
    }
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendStreamingMessage",
        "params": {"message": message},
    }
    shown = {"data": SURFACE, "metadata": {"mimeType": "application/json+a2ui"}}
    made = writer(tmp_path / "r.db")
    frames = [
        frame(
            1, 0, json.dumps(call).encode(), kind=FrameKind.REQUEST, direction=Direction.TO_AGENT
        ),
        _event(1, status(shown)),
        _event(2, status({"data": {"latency": 20}})),
    ]
    made.write(frames, changes=changes(exchange(1, extensions=f"{LATENCY_URI}, urn:other")))
    made.finish(STARTED + 10_000 * MS)
    return tmp_path / "r.db"


def _event(seq: int, result: dict[str, Any]) -> Any:
    payload = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    return frame(1, seq, payload, event=EventKind.STATUS, state=2)


@pytest.fixture
def courier(tmp_path: Path) -> Path:
    """The folder of the plug-in of the manual."""
    code = re.search(r"```python\n# courier.py\n(.*?)```", _PAGE, re.DOTALL)
    assert code is not None
    folder = tmp_path / "plug-ins"
    folder.mkdir()
    (folder / "courier.py").write_text(code[1])
    return folder


def test_content_is_described_where_frames_are_listed(recording: Path, tmp_path: Path) -> None:
    shown = run(tmp_path / "state", "a2a-inspect", "show", recording)
    drawn = run(tmp_path / "state", "a2a-inspect", "lanes", recording, "1", "--width", "200")
    for words in ("{A2UI: surfaceUpdate main (2 components)}", "{latency: 20 ms expected}"):
        assert words in shown.out
        assert words in drawn.out
    with Recording(recording) as opened:
        (row,) = opened.read_exchanges()
        rows = list(opened.read_frames(row.key))
        assert summarize_frame(opened, rows[1], row.exchange).endswith(
            "{A2UI: surfaceUpdate main (2 components)}"
        )


def test_the_facts_of_a_frame_have_its_extensions(recording: Path) -> None:
    with Recording(recording) as opened:
        stream = opened.read_exchange(make_key(1, 1))
        assert stream is not None
        frames = [each.frame for each in opened.read_frames(stream.key)]
    assert extension_lines(frames[0], stream.exchange) == []
    assert extension_lines(frames[2], stream.exchange) == [
        "EXTENSIONS",
        "latency           statusUpdate.status.message.parts[0].data  20 ms expected",
        "",
    ]


async def test_the_screen_shows_them(recording: Path) -> None:
    """In the list of frames, and in the Facts tab of a frame."""
    async with looking(recording) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "enter", "G")
        await person.sees(
            "event     status working {A2UI", "Frame 2: status working {latency: 20 ms expected}"
        )
        await person.types("enter", "7", "G")
        await person.sees("[7 Facts]", "EXTENSIONS", "20 ms expected")


def test_json_has_each_extension_with_its_place(recording: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "state", "a2a-inspect", "show", recording, "--json")
    (call,) = map(json.loads, done.lines)
    place = "statusUpdate.status.message.parts[0].data"
    assert [each.get("extensions") for each in call["frames"]] == [
        None,
        [{"name": "A2UI", "place": place, "words": "surfaceUpdate main (2 components)"}],
        [{"name": "latency", "place": place, "words": "20 ms expected"}],
    ]


def test_the_example_of_the_manual_is_used(recording: Path, courier: Path, tmp_path: Path) -> None:
    shown = re.search(r"    \$ a2a-inspect show 1\n    (.*)\n", _PAGE)
    assert shown is not None
    named = {"A2A_PROXY_EXTENSIONS": "courier:COURIER", "PYTHONPATH": str(courier)}
    done = run(tmp_path / "state", "a2a-inspect", "show", recording, **named)
    assert done.err == ""
    assert shown[1] in done.out
    without = run(tmp_path / "state", "a2a-inspect", "show", recording)
    assert "courier" not in without.out


def test_a_package_of_the_manual_is_listed(courier: Path, tmp_path: Path) -> None:
    assert f'[project.entry-points."{EXTENSION_GROUP}"]\ncourier = "courier:COURIER"' in _PAGE
    install(courier, "courier", "courier:COURIER", group=EXTENSION_GROUP)
    done = run(tmp_path, "a2a-inspect", "plugins", PYTHONPATH=str(courier))
    assert (done.code, done.err) == (0, "")
    assert done.lines[1].split() == [
        "extension",
        "courier",
        "https://courier.example/ext/",
        "hooked-package",
        "1.2",
    ]
    assert {re.split("  +", line)[1] for line in done.lines[2:]} >= {each.name for each in BUILT_IN}


def test_a_plug_in_that_cannot_be_used_is_reported(
    recording: Path, courier: Path, tmp_path: Path
) -> None:
    """The list exits with 2; a command that shows frames warns once and goes on."""
    named = {"A2A_PROXY_EXTENSIONS": "courier:PARCEL", "PYTHONPATH": str(courier)}
    why = "extension courier:PARCEL: AttributeError: module 'courier' has no attribute 'PARCEL'\n"
    listed = run(tmp_path / "state", "a2a-inspect", "plugins", **named)
    assert (listed.code, listed.err) == (2, f"a2a-inspect: error: {why}")
    shown = run(tmp_path / "state", "a2a-inspect", "show", recording, **named)
    assert (shown.code, shown.err) == (0, f"a2a-inspect: warning: {why}")
    assert "{A2UI: " in shown.out


def test_each_built_in_extension_is_in_the_manual() -> None:
    rows = re.findall(
        r"^\| ([\w ]+?)(?: \(.*?\))? \|", _PAGE.partition("## Your own")[0], re.MULTILINE
    )
    assert rows[1:] == [each.name for each in BUILT_IN]
