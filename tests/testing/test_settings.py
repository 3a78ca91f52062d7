from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.testing.plugin import RECORD_MODES
from a2a_proxy.testing.settings import (
    MODES,
    REPLAY_SETTINGS,
    SETTING_NAMES,
    PluginSettings,
    WrongSetting,
    merge_settings,
)


def test_the_narrower_layer_wins() -> None:
    layers = [
        ("a2a_config", {"speed": "recorded", "match": "strict"}),
        ("module", {"match": "loose", "ignore": "A2A-CARD"}),
        ("function", {"ignore": ["A2A-GEN-001"]}),
        ("the command line", {"record_mode": "once"}),
    ]
    found = merge_settings(layers)
    assert (found.speed, found.match, found.ignore, found.record_mode) == (
        "recorded",
        "loose",
        ("A2A-GEN-001",),
        "once",
    )
    assert merge_settings([]) == PluginSettings()


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            {"recordmode": "once"},
            "the marker has no setting 'recordmode': did you mean record_mode?",
        ),
        ({"xyz": 1}, "the marker has no setting 'xyz': the settings are record_mode, "),
        (
            {"before_record": "SendMessage"},
            "before_record 'SendMessage' is not a function of a call",
        ),
        (
            {"record_mode": "all"},
            "record_mode 'all' is not one of none, once, new_episodes, rewrite, verify, spy",
        ),
        ({"on_expiry": "shout"}, "on_expiry 'shout' is not one of warn, fail, rerecord"),
        ({"match": "fuzzy"}, "match 'fuzzy' is not one of strict, default, by-operation, loose"),
        ({"fail_on": "never"}, "fail_on 'never' is not one of info, warning, error"),
        ({"max_age": "soon"}, "max_age 'soon' is not an age"),
        (
            {"speed": "fast"},
            "speed 'fast' is not a speed: write 'instant', 'recorded' or a number above 0",
        ),
        ({"speed": 0}, "speed 0 is not a speed"),
        (
            {"policies": {"GetTask": "often"}},
            "policy 'often' is not one of sequence, last-sticky, by-progress",
        ),
    ],
)
def test_an_invalid_setting_is_named_with_its_source(layer: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongSetting) as wrong:
        merge_settings([("the marker", layer)])
    assert str(wrong.value).startswith("the marker")
    assert message in str(wrong.value)


def test_replay_settings_are_passed_to_the_replay() -> None:
    assert set(REPLAY_SETTINGS) < set(SETTING_NAMES)
    assert merge_settings([("", {"speed": 2})]).get_replay_settings()["speed"] == 2


def test_the_modes_of_the_option_are_those_of_the_settings() -> None:
    """The plug-in does not import the settings at pytest's start."""
    assert RECORD_MODES == MODES
