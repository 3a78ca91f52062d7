"""What `a2a-proxy replay` prints: a banner that says what is served where, a line per call, misses, a summary.

Lines of calls go to stdout, what is about the mock itself to stderr; on a pipe, whose stdout is the client's, all goes
to stderr. With `--log-format json` each is one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Protocol

import msgspec

from a2a_proxy import __version__
from a2a_proxy.cli.printer import Printer
from a2a_proxy.model.exchange import Binding
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.performance import AllowedCall, MissedCall, PlayedCall, ReplayReport, UnservedCall, WebhookPosted
from a2a_proxy.replay.serve.servable import SERVED_BINDINGS, UnservableCalls, find_unservable

_CLOSE_SECONDS = 2.0
_MOST_PLACES = 8
_MOST_UNUSED = 20
_COLOURS = {"ok": "32", "error": "31", "miss": "31", "cut": "33", "client gone": "33"}
_NAMES = {Binding.JSONRPC: "JSON-RPC", Binding.REST: "REST", Binding.GRPC: "gRPC", Binding.STDIO: "stdio"}


class ReplayConsole(Protocol):
    """Where the mock tells its user what happens."""

    def start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """It listens; nowhere on a pipe."""

    def told(self, told: ReplayReport) -> None:
        """A call is over, missed, or a webhook was posted."""

    def summary(self, player: Player) -> None:
        """It has stopped."""

    def close(self) -> None:
        """Wait until all is printed."""


class ReplayTextConsole:
    """For people."""

    def __init__(self, *, quiet: bool, pipe: bool) -> None:
        out = sys.stderr if pipe else sys.stdout
        self._out = Printer(out, _dropped)
        self._err = self._out if pipe else Printer(sys.stderr, _dropped)
        self._quiet = quiet
        self._pipe = pipe
        self._colour = out is not None and out.isatty() and not os.environ.get("NO_COLOR")
        self._played = 0

    def start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """What is served, where, and what is not."""
        where = ", ".join(addresses) or "stdin and stdout"
        self._err(f"a2a-proxy {__version__} replays {make_visible(script.name)} on {where}")
        served = (Binding.STDIO,) if self._pipe else SERVED_BINDINGS
        found = find_unservable(script, served)
        missing = {binding: _missing(found, binding) for binding in served}
        counts = (f"{_NAMES[each]} {len(script.calls) - len(missing[each])}" for each in served)
        self._err(f"{_count(len(script.calls), 'call')} recorded; served: {', '.join(counts)}")
        for gap in found:
            on = f" on {_NAMES[gap.binding]}" if gap.binding is not None else ""
            self._err(f"not served{on}: {_places(gap.places)}: {make_visible(gap.reason)}")
        if not self._pipe:
            self._card(cards)
        if not self._pipe:
            self._err("stop with Ctrl-C")

    def told(self, told: ReplayReport) -> None:
        """A line; of a miss, and of what was answered all the same, its whole text."""
        if isinstance(told, MissedCall):
            self._out(told.miss.full_text())
        elif isinstance(told, AllowedCall):
            self._out(told.miss.allowed_text())
        elif isinstance(told, WebhookPosted):
            self._posted(told)
        elif isinstance(told, UnservedCall):
            self._out(f"{told.place:<6} {make_visible(told.operation)}  {told.binding}  not served: {make_visible(told.reason)}")
        else:
            self._played += 1
            if not self._quiet:
                self._out(self._line(told))

    def summary(self, player: Player) -> None:
        """How many were played, missed and never asked for."""
        unused = player.unused_calls()
        said = [f"{_count(self._played, 'call')} played", _count(len(player.misses), "miss", "misses")]
        if player.allowed_misses:
            said.append(f"{_count(len(player.allowed_misses), 'call')} answered though something differs")
        said.append(f"{_count(len(unused), 'recorded call')} not asked for")
        self._err(", ".join(said))
        if unused:
            listed = ", ".join(f"{call.place} {call.operation}" for call in unused[:_MOST_UNUSED])
            more = f" and {len(unused) - _MOST_UNUSED} more" if len(unused) > _MOST_UNUSED else ""
            self._err(f"not asked for: {listed}{more}")

    def close(self) -> None:
        """Wait until all is printed."""
        self._out.settle(_CLOSE_SECONDS)
        self._err.settle(_CLOSE_SECONDS)

    def _card(self, cards: ReplayCards) -> None:
        if cards.has_card:
            listed = ", ".join(_NAMES[each] for each in cards.offered_bindings)
            self._err(f"the agent card lists {listed or 'no interface'}, with URLs that lead here")
        for text, hint in cards.card_notes():
            self._err(f"a2a-proxy: warning: {make_visible(text)}")
            if hint:
                self._err(f"a2a-proxy: hint: {hint}")

    def _posted(self, told: WebhookPosted) -> None:
        url = make_visible(told.url)
        if told.status:
            self._out(f"webhook {url} answered {told.status}" + (f" at try {told.tries}" if told.tries > 1 else ""))
        else:
            self._out(f"webhook {url} not reached in {_count(told.tries, 'try', 'tries')}: {make_visible(told.reason)}")

    def _line(self, told: PlayedCall) -> str:
        how = f"\x1b[{_COLOURS[told.outcome]}m{told.outcome}\x1b[0m" if self._colour and told.outcome in _COLOURS else told.outcome
        took = f"{told.duration / 1e6:.1f} ms" if told.duration < 1e9 else f"{told.duration / 1e9:.1f} s"
        spoken = f"{told.binding} {told.dialect}"
        return f"{told.place:<6} {told.operation}  {spoken}  {_count(told.sent, 'message')}  {took}  {how}"


class ReplayJsonConsole:
    """For programs."""

    def __init__(self, *, pipe: bool) -> None:
        self._out = Printer(sys.stderr if pipe else sys.stdout, lambda count: _json("skipped", count=count))
        self._pipe = pipe
        self._played = 0

    def start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """`start`."""
        found = find_unservable(script, (Binding.STDIO,) if self._pipe else SERVED_BINDINGS)
        self._put(
            "start",
            version=__version__,
            recording=script.name,
            listen=addresses,
            calls=len(script.calls),
            not_served=msgspec.to_builtins(found),
            card=[str(each) for each in cards.offered_bindings] if cards.has_card else None,
            warnings=[text for text, _ in cards.card_notes()] if not self._pipe else [],
        )

    def told(self, told: ReplayReport) -> None:
        """`call`, `miss`, `allowed`, `webhook` or `not-served`."""
        if isinstance(told, MissedCall):
            self._put("miss", binding=str(told.binding), text=told.miss.full_text(), **_detail(told))
        elif isinstance(told, AllowedCall):
            self._put("allowed", binding=str(told.binding), text=told.miss.allowed_text(), **_detail(told))
        elif isinstance(told, WebhookPosted):
            self._put("webhook", **msgspec.to_builtins(told))
        elif isinstance(told, UnservedCall):
            self._put("not-served", **msgspec.to_builtins(told))
        else:
            self._played += 1
            self._put("call", **msgspec.to_builtins(told))

    def summary(self, player: Player) -> None:
        """`summary`."""
        unused = [call.place for call in player.unused_calls()]
        self._put("summary", played=self._played, misses=len(player.misses), loose=len(player.allowed_misses), unused=unused)

    def close(self) -> None:
        """Wait until all is printed."""
        self._out.settle(_CLOSE_SECONDS)

    def _put(self, event: str, **fields: object) -> None:
        self._out(_json(event, **fields))


def make_console(log_format: str, *, quiet: bool, pipe: bool) -> ReplayConsole:
    """The console that the user asked for."""
    return ReplayJsonConsole(pipe=pipe) if log_format == "json" else ReplayTextConsole(quiet=quiet, pipe=pipe)


def _detail(told: MissedCall | AllowedCall) -> dict[str, Any]:
    return {name: item for name, item in told.miss.error_detail().items() if name != "@type"}


def _json(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields}, ensure_ascii=True, default=str)


def _missing(found: list[UnservableCalls], binding: Binding) -> set[str]:
    return {place for gap in found if gap.binding is binding for place in gap.places}


def _places(places: tuple[str, ...]) -> str:
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    return ", ".join(places[:_MOST_PLACES]) + more


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def _dropped(count: int) -> str:
    return f"({count} lines not shown)"
