from __future__ import annotations

import pytest

from a2a_proxy.testing.plan import CannotPlay, CassetteWrite, RecordPlan, make_plan
from a2a_proxy.testing.settings import MODES, PluginSettings

REPLAYED = RecordPlan(replay=True, live=False)
RECORDED = RecordPlan(replay=False, live=True, write=CassetteWrite.REPLACE)


def planned(
    mode: str, *, exists: bool = True, too_old: str = "", on_expiry: str = "warn"
) -> RecordPlan:
    settings = PluginSettings(record_mode=mode, on_expiry=on_expiry)
    return make_plan(settings, "hello.a2a.jsonl", exists=exists, too_old=too_old)


def test_each_mode_with_a_cassette() -> None:
    assert {mode: planned(mode) for mode in MODES} == {
        "none": REPLAYED,
        "once": REPLAYED,
        "new_episodes": RecordPlan(replay=True, live=True, write=CassetteWrite.APPEND),
        "rewrite": RECORDED,
        "verify": RecordPlan(replay=False, live=True, compare=True),
        "spy": RecordPlan(replay=True, live=True, write=CassetteWrite.ASIDE),
    }


def test_each_mode_without() -> None:
    for mode in ("once", "new_episodes", "rewrite"):
        assert planned(mode, exists=False) == RECORDED
    assert planned("spy", exists=False) == RecordPlan(
        replay=False, live=True, write=CassetteWrite.ASIDE
    )
    for mode in ("none", "verify"):
        with pytest.raises(
            CannotPlay,
            match=r"the cassette hello\.a2a\.jsonl does not exist\nhint: .*--a2a-record-mode=once",
        ):
            planned(mode, exists=False)


@pytest.mark.parametrize("mode", MODES)
def test_replaying_an_old_cassette_warns(mode: str) -> None:
    warned = bool(planned(mode, too_old="is old").warning)
    assert warned == planned(mode).replay
    if planned(mode).replay:
        with pytest.raises(CannotPlay, match="is old\nhint: record it again"):
            planned(mode, too_old="is old", on_expiry="fail")


def test_only_recording_modes_rerecord_an_old_cassette() -> None:
    """`none` never needs an agent."""
    again = {
        mode for mode in MODES if planned(mode, too_old="is old", on_expiry="rerecord") == RECORDED
    }
    assert again == {"once", "new_episodes", "rewrite"}
    assert planned("none", too_old="is old", on_expiry="rerecord").warning.startswith("is old")
