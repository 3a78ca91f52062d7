"""Settings of a test: defaults, `a2a_config`, the markers from the widest to the narrowest, the
command line.

Does not use pytest, the file system or the clock.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from a2a_proxy.testing.cassette_age import parse_age

if TYPE_CHECKING:
    from a2a_proxy.api import Exchange
    from a2a_proxy.replay.core.match_rules import Matcher

MODES = ("none", "once", "new_episodes", "rewrite", "verify", "spy")
ON_EXPIRY = ("warn", "fail", "rerecord")
SEVERITIES = ("info", "warning", "error")
PRESETS = ("strict", "default", "by-operation", "loose")
POLICIES = ("sequence", "last-sticky", "by-progress")


KeepExchange = Callable[["Exchange"], object]


class WrongSetting(Exception):
    """A setting that does not exist, or an invalid value; the message lists what is allowed."""


@dataclass(frozen=True)
class PluginSettings:
    """All settings of `a2a_config` and `@pytest.mark.a2a_cassette`."""

    record_mode: str = "none"
    """One of MODES."""
    upstream_grpc: str = ""
    """`HOST:PORT` for HTTP/2, if the live agent has two ports and its card does not name them."""
    fail_unused: bool = False
    """Fail a test that does not make all recorded calls."""
    fail_on: str = "error"
    """Lowest severity of a finding that fails a test that uses `a2a_live`."""
    ignore: tuple[str, ...] = ()
    """Rules whose findings never fail a test: `A2A-CARD-007`, or the prefix of an id, `A2A-CARD`;
    and paths of a request that are not compared: `$.message.metadata`."""
    before_record: KeepExchange | None = None
    """Filter called with each call before a cassette is written; calls for which it is false are
    left out."""
    redact: tuple[str, ...] = ()
    """What to redact besides credentials: words of `a2a-proxy --redact`."""
    max_age: object = None
    """Maximum age of a cassette: `"30d"`, `"12h"`, a timedelta, seconds. None: no limit."""
    on_expiry: str = "warn"
    """What happens to an older cassette: one of ON_EXPIRY."""
    block_network: bool = False
    """Block connections of the process of the tests, except to the agents of the fixtures."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that are allowed as well: `localhost`, `10.0.0.7`, `db.internal:5432`."""
    match: str = "default"
    """Which parts of a request must be as recorded: one of PRESETS."""
    match_on: tuple[str | Matcher, ...] = ()
    """Parts of a request that must be as recorded instead of those of `match`: names, and functions
    of the recorded and the live request."""
    normalize: tuple[str, ...] = ()
    """Regular expressions: texts of requests that one of them matches are equal."""
    speed: str | float = "instant"
    """Pauses between events: `instant`, `recorded`, or a speed factor."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """By operation, how a repeated request is answered: one of POLICIES."""
    lenient: bool = False
    """Report a client that leaves the recording within a stream, and continue the stream."""
    faults: tuple[str, ...] = ()
    """Faults to inject: at a place of the cassette (`drop #3.4`), or on the traffic itself
    (`drop 2 of SendStreamingMessage`)."""
    keep_times: bool = False
    """Leave timestamps as recorded instead of shifting them to the present."""
    allow_redacted: bool = False
    """Deliver redaction labels in place of credentials."""
    allow_incomplete: bool = False
    """Replay a cassette even if its recording is incomplete."""

    def get_replay_settings(self) -> dict[str, Any]:
        """Return the settings of the replay."""
        settings = {name: getattr(self, name) for name in REPLAY_SETTINGS} | {
            "ignore": tuple(each for each in self.ignore if not _is_rule(each))
        }
        return settings | {"faults": tuple(each for each in self.faults if _has_place(each))}

    def get_traffic_faults(self, *, replay: bool) -> tuple[str, ...]:
        """Return the faults of the traffic itself: with `replay`, those that name no place of a
        cassette."""
        return tuple(each for each in self.faults if not (replay and _has_place(each)))

    @property
    def ignored_rules(self) -> tuple[str, ...]:
        """The rules of `ignore`."""
        return tuple(filter(_is_rule, self.ignore))


SETTING_NAMES = tuple(each.name for each in fields(PluginSettings))
REPLAY_SETTINGS = (
    "match",
    "match_on",
    "normalize",
    "speed",
    "policies",
    "lenient",
    "faults",
    "keep_times",
    "allow_redacted",
    "allow_incomplete",
)
_ALLOWED_VALUES = {
    "record_mode": MODES,
    "on_expiry": ON_EXPIRY,
    "fail_on": SEVERITIES,
    "match": PRESETS,
}
_LIST_SETTINGS = ("ignore", "allowed_hosts", "faults", "redact", "match_on", "normalize")
_RULE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*-?")
"""The id of a rule, or the prefix of one."""


def merge_settings(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> PluginSettings:
    """Merge settings from layers, the widest first: a later layer replaces the values of an earlier
    one.

    Each layer has a name for the error message. Raises WrongSetting.
    """
    settings = PluginSettings()
    for where, layer in layers:
        settings = replace(
            settings, **{name: _check_value(where, name, value) for name, value in layer.items()}
        )
    return settings


def _check_value(where: str, name: str, value: Any) -> Any:
    if name not in SETTING_NAMES:
        near = difflib.get_close_matches(str(name), SETTING_NAMES, 1)
        meant = (
            f"did you mean {near[0]}?" if near else f"the settings are {', '.join(SETTING_NAMES)}"
        )
        raise WrongSetting(f"{where} has no setting {name!r}: {meant}")
    if name in _LIST_SETTINGS:
        listed = (value,) if isinstance(value, str) or callable(value) else tuple(value)
        _check_list(where, name, listed)
        return listed
    if name in _ALLOWED_VALUES and value not in _ALLOWED_VALUES[name]:
        raise WrongSetting(
            f"{where}: {name} {value!r} is not one of {', '.join(_ALLOWED_VALUES[name])}"
        )
    if name == "max_age" and value is not None:
        try:
            parse_age(value)
        except ValueError as wrong:
            raise WrongSetting(f"{where}: {wrong}") from None
    if name == "before_record" and value is not None and not callable(value):
        raise WrongSetting(f"{where}: before_record {value!r} is not a function of a call")
    if name == "policies" and (odd := [each for each in value.values() if each not in POLICIES]):
        raise WrongSetting(f"{where}: policy {odd[0]!r} is not one of {', '.join(POLICIES)}")
    if name == "speed" and not _is_speed(value):
        raise WrongSetting(
            f"{where}: speed {value!r} is not a speed: write 'instant', 'recorded' or a number "
            f"above 0"
        )
    return value


def _has_place(fault: str) -> bool:
    return "#" in fault


def _is_rule(word: object) -> bool:
    return isinstance(word, str) and _RULE.fullmatch(word) is not None


def _check_list(where: str, name: str, listed: tuple[Any, ...]) -> None:
    """Check the rules by which requests match. Raises WrongSetting."""
    if not listed or name not in ("match_on", "normalize", "ignore") or all(map(_is_rule, listed)):
        return
    from a2a_proxy.replay.core.match_rules import (
        MatchRuleError,
        check_expressions,
        parse_ignored,
        parse_match_name,
    )

    try:
        if name == "match_on":
            for each in listed:
                if not callable(each):
                    parse_match_name(str(each))
        elif name == "normalize":
            check_expressions(listed)
        elif name == "ignore":
            parse_ignored(str(each) for each in listed if not _is_rule(each))
    except MatchRuleError as wrong:
        raise WrongSetting(f"{where}: {name}: {wrong}") from None


def _is_speed(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("instant", "recorded")
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
