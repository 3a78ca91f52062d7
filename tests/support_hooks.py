"""Hooks for the tests, written into a folder on PYTHONPATH, and the calls that they recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_MODULE = '''
import json, os, sys, threading, time
from pathlib import Path

from a2a_proxy.hooks import METHODS, Hook

OUT = Path(os.environ["HOOKED"])


def say(**what):
    with OUT.open("a") as file:
        file.write(json.dumps(what) + "\\n")


class Notes(Hook):
    """Notes down every call."""

    def start(self, session):
        ran = {"pid": os.getpid(), "nice": os.nice(0)}
        say(method="start", uuid=session.uuid, recording=session.recording, **ran)

    def on_frame(self, frame):
        size = [len(frame.payload), frame.size]
        say(method="on_frame", at=[frame.exchange, frame.seq], size=size)

    def on_finding(self, finding):
        say(method="on_finding", at=[finding.exchange, finding.seq], rule=finding.rule)

    def on_gap(self, gap):
        say(method="on_gap", task=gap.task_id, missing=list(gap.missing))

    def on_exchange_end(self, exchange):
        say(method="on_exchange_end", at=[exchange.id, -1], how=exchange.how)

    def close(self):
        say(method="close")


class Fails(Notes):
    def on_frame(self, frame):
        raise ValueError(f"no {frame.seq}")

    def close(self):
        sys.exit("not even that")


class Dies(Notes):
    """Its process ends at its third frame, once; the next one goes on."""

    def on_frame(self, frame):
        Notes.on_frame(self, frame)
        if OUT.read_text().count("on_frame") == 3:
            os._exit(3)


class AlwaysDies(Notes):
    def on_frame(self, frame):
        os.kill(os.getpid(), 9)


class Spins(Notes):
    def on_frame(self, frame):
        say(method="on_frame", spins=True)
        while True:
            pass


class Waits(Notes):
    """Its first frame takes until there is a file `go` beside the notes."""

    def on_frame(self, frame):
        Notes.on_frame(self, frame)
        while not OUT.with_name("go").exists():
            time.sleep(0.01)


class Prints:
    """Derives from nothing."""

    def on_frame(self, frame):
        print("printed", frame.seq)


class Unmade(Hook):
    def __init__(self):
        raise RuntimeError("not today")


class Nothing:
    pass


class Awaited:
    async def on_frame(self, frame):
        raise AssertionError


class Lingers:
    """Leaves a thread behind that does not end."""

    def on_exchange_end(self, exchange):
        threading.Thread(target=time.sleep, args=(1000,)).start()


NUMBER = 7
'''


def write_hooks(folder: Path) -> dict[str, str]:
    """Write a folder with the modules `noting` and `broken`; return the environment in which they
    are found."""
    folder.mkdir()
    (folder / "noting.py").write_text(_MODULE)
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    return {"PYTHONPATH": str(folder), "HOOKED": str(folder / "hooked")}


def noted(environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the calls so far, in order."""
    path = Path(environment["HOOKED"])
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def methods(environment: dict[str, str]) -> list[str]:
    """Return the names of the called methods."""
    return [call["method"] for call in noted(environment)]


def install(folder: Path, name: str, reference: str, *, group: str = "a2a_proxy.hooks") -> None:
    """Write the metadata of a package with an entry point beside the modules of `folder`, as pip
    does."""
    info = folder / "hooked_package-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hooked-package\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {reference}\n")
