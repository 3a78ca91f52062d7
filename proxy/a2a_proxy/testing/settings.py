"""What a test wants: defaults, `a2a_config`, the markers from the widest to the narrowest, the command line.

Pure: nothing here asks pytest, the file system or the clock.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from a2a_proxy.testing.cassette_age import parse_age

if TYPE_CHECKING:
    from a2a_proxy.api import Exchange

MODES = ("none", "once", "new_episodes", "rewrite", "verify", "spy")
ON_EXPIRY = ("warn", "fail", "rerecord")
SEVERITIES = ("info", "warning", "error")
PRESETS = ("strict", "default", "by-operation", "loose")
POLICIES = ("sequence", "last-sticky", "by-progress")


KeepExchange = Callable[["Exchange"], object]


class WrongSetting(Exception):
    """A setting that there is not, or that cannot have this value; the text says what can be written."""


@dataclass(frozen=True)
class PluginSettings:
    """Everything that `a2a_config` and `@pytest.mark.a2a_cassette` may set."""

    record_mode: str = "none"
    """One of MODES."""
    upstream_grpc: str = ""
    """`HOST:PORT` to which HTTP/2 goes, where the live agent has two ports and its card does not say so."""
    fail_unused: bool = False
    """A recorded call that the test never asks for fails it."""
    fail_on: str = "error"
    """From which severity on a finding fails a test that uses `a2a_live`."""
    ignore: tuple[str, ...] = ()
    """Rules that do not: `A2A-CARD-007`, or the beginning of an id, `A2A-CARD`."""
    before_record: KeepExchange | None = None
    """Asked of each call before a cassette is written: those that it is not true of are left out."""
    redact: tuple[str, ...] = ()
    """What is not recorded besides credentials: words of `a2a-proxy --redact`."""
    max_age: object = None
    """How old a cassette may be: `"30d"`, `"12h"`, a timedelta, seconds. None: as old as it likes."""
    on_expiry: str = "warn"
    """What happens to an older one: one of ON_EXPIRY."""
    block_network: bool = False
    """The process of the tests connects to nobody but agents of the fixtures."""
    allowed_hosts: tuple[str, ...] = ()
    """And to these: `localhost`, `10.0.0.7`, `db.internal:5432`."""
    match: str = "default"
    """What of a request must be as recorded: one of PRESETS."""
    speed: str | float = "instant"
    """Pauses between events: `instant`, `recorded`, or how many times faster."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """By operation, what a request gets that comes again: one of POLICIES."""
    lenient: bool = False
    """A client that leaves the recording within a stream is told of, and the stream goes on."""
    faults: tuple[str, ...] = ()
    """What goes wrong on purpose: `drop #3.4`, `stall 30s before #3.6`."""
    keep_times: bool = False
    """Timestamps stay as recorded; else they are shifted to now."""
    allow_redacted: bool = False
    """Labels are delivered where credentials stood."""
    allow_incomplete: bool = False
    """A cassette that lacks something of what passed is replayed all the same."""

    def replay(self) -> dict[str, Any]:
        """What the replay is told."""
        return {name: getattr(self, name) for name in REPLAY_SETTINGS}


SETTING_NAMES = tuple(each.name for each in fields(PluginSettings))
REPLAY_SETTINGS = (
    "match",
    "speed",
    "policies",
    "lenient",
    "faults",
    "keep_times",
    "allow_redacted",
    "allow_incomplete",
)
_ALLOWED_VALUES = {"record_mode": MODES, "on_expiry": ON_EXPIRY, "fail_on": SEVERITIES, "match": PRESETS}
_LIST_SETTINGS = ("ignore", "allowed_hosts", "faults", "redact")


def merge_settings(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> PluginSettings:
    """Settings from layers, the widest first: what a later one says replaces what an earlier one said.

    Each layer comes with its name for the message. Raises WrongSetting.
    """
    settings = PluginSettings()
    for where, layer in layers:
        settings = replace(settings, **{name: _check_value(where, name, value) for name, value in layer.items()})
    return settings


def _check_value(where: str, name: str, value: Any) -> Any:
    if name not in SETTING_NAMES:
        near = difflib.get_close_matches(str(name), SETTING_NAMES, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTING_NAMES)}"
        raise WrongSetting(f"{where} has no setting {name!r}: {meant}")
    if name in _LIST_SETTINGS:
        return (value,) if isinstance(value, str) else tuple(value)
    if name in _ALLOWED_VALUES and value not in _ALLOWED_VALUES[name]:
        raise WrongSetting(f"{where}: {name} {value!r} is none of {', '.join(_ALLOWED_VALUES[name])}")
    if name == "max_age" and value is not None:
        try:
            parse_age(value)
        except ValueError as wrong:
            raise WrongSetting(f"{where}: {wrong}") from None
    if name == "before_record" and value is not None and not callable(value):
        raise WrongSetting(f"{where}: before_record {value!r} is no function of a call")
    if name == "policies" and (odd := [each for each in value.values() if each not in POLICIES]):
        raise WrongSetting(f"{where}: policy {odd[0]!r} is none of {', '.join(POLICIES)}")
    if name == "speed" and not _is_speed(value):
        raise WrongSetting(f"{where}: speed {value!r} is none: write 'instant', 'recorded' or a number above 0")
    return value


def _is_speed(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("instant", "recorded")
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
