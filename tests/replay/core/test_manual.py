"""The misses in the manual are those of the player."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

import a2a_proxy
from a2a_proxy.replay.core.faults import FAULT_EXAMPLES
from support_replay import Stage, message, sample

MANUAL = (Path(a2a_proxy.__file__).parent / "manual" / "replay.md").read_text()


def shown(text: str) -> bool:
    return "\n".join(f"    {line}" for line in text.splitlines()) in MANUAL


def test_the_manual_shows_the_misses_of_the_demo() -> None:
    stage = Stage(replace(sample("demo"), name="demo.a2a.jsonl"))
    assert shown(
        stage.miss("CancelTask", {"id": "0821d0a7-2216-4e89-9d48-b939dae7c269"}).full_text()
    )
    assert shown(stage.miss("SendMessage", message("Book two tables by the water")).full_text())
    stage.ask("SendMessage", message("Book a table by the water"))
    assert shown(stage.miss("SendMessage", message("Book a table by the water")).full_text())


def test_the_manual_shows_a_divergence_of_the_live_sample() -> None:
    whole = replace(sample("live-bidi"), name="live-bidi.a2a.jsonl")
    stage = Stage(whole)
    play = stage.again(whole.calls[1])
    stage.run(play)
    play.on_client_message(message("no, stop"), stage.now)
    assert shown(stage.player.misses[0].full_text())


def test_every_fault_is_in_the_table() -> None:
    for form in FAULT_EXAMPLES.values():
        assert f"| `{form}` |" in MANUAL
