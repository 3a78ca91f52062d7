"""The output of `a2a-proxy replay`: a banner with what is served and where, a line per call,
misses, a summary.

Lines of calls go to stdout, lines about the mock itself to stderr; with `--stdio`, where stdout
belongs to the client, all go to stderr. With `--log-format json` each line is one JSON object.
"""

import json
import sys
from typing import Any, Protocol

import msgspec

from a2a_proxy import __version__
from a2a_proxy.model.values import Binding
from a2a_proxy.present.output import ColouredWord, Printer
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.performance import (
    AllowedCall,
    MaskedCall,
    MissedCall,
    PlayedCall,
    ReplayReport,
    UnservedCall,
    WebhookPosted,
)
from a2a_proxy.replay.serve.servable import SERVED_BINDINGS, UnservableCalls, find_unservable

_CLOSE_SECONDS = 2.0
_MAX_PLACES = 8
_MAX_UNUSED = 20
_OUTCOME_COLOURS = {"ok": "32", "error": "31", "miss": "31", "cut": "33", "client gone": "33"}
_BINDING_NAMES = {
    Binding.JSONRPC: "JSON-RPC",
    Binding.REST: "REST",
    Binding.GRPC: "gRPC",
    Binding.STDIO: "stdio",
    Binding.WEBSOCKET: "WebSocket",
}


class ReplayConsole(Protocol):
    """Output to the user of the mock."""

    def show_start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """Show that the mock listens; without addresses it uses stdin and stdout."""

    def show_event(self, event: ReplayReport) -> None:
        """Show the end of a call, a miss, or a posted webhook."""

    def show_summary(self, player: Player) -> None:
        """Show the summary: the mock has stopped."""

    def close(self) -> None:
        """Wait until all lines are printed."""


class ReplayTextConsole:
    """Output as text."""

    def __init__(self, *, quiet: bool, pipe: bool) -> None:
        out, err = sys.stdout, sys.stderr  # noqa: TID251 - for its printer
        self._err = Printer(err, _dropped_lines_note)
        self._out = self._err if pipe else Printer(out, _dropped_lines_note)
        self._quiet = quiet
        self._is_stdio = pipe
        self._played = 0

    def show_start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """Print the calls that are served, where, and those that are not."""
        where = ", ".join(addresses) or "stdin and stdout"
        self._err(f"a2a-proxy {__version__} replays {script.name} on {where}")
        served = (Binding.STDIO,) if self._is_stdio else SERVED_BINDINGS
        found = find_unservable(script, served)
        counts = (f"{_BINDING_NAMES[each]} {_count_served(script, found, each)}" for each in served)
        self._err(
            f"{_format_count(len(script.calls), 'call')} recorded; served: {', '.join(counts)}"
        )
        if script.missing:
            self._err(f"a2a-proxy: warning: the recording is not complete: {script.missing}")
        for fault in script.faults:
            self._err(f"fault: {fault}")
        for gap in found:
            on = f" on {_BINDING_NAMES[gap.binding]}" if gap.binding is not None else ""
            self._err(f"not served{on}: {_format_places(gap.places)}: {gap.reason}")
        if not self._is_stdio:
            self._print_card_note(cards)
        if not self._is_stdio:
            self._err("stop with Ctrl-C")

    def show_event(self, event: ReplayReport) -> None:
        """Print a line; for misses and tolerated differences the whole text."""
        if isinstance(event, MissedCall):
            self._print_lines(event.miss.full_text())
        elif isinstance(event, AllowedCall):
            self._print_lines(event.miss.allowed_text())
        elif isinstance(event, MaskedCall):
            self._out(event.match.text)
        elif isinstance(event, WebhookPosted):
            if event.status:
                self._out(
                    f"webhook {event.url} answered {event.status}"
                    + (f" at try {event.tries}" if event.tries > 1 else "")
                )
            else:
                self._out(
                    f"webhook {event.url} not reached in "
                    f"{_format_count(event.tries, 'try', 'tries')}: {event.reason}"
                )
        elif isinstance(event, UnservedCall):
            self._out(
                f"{event.place:<6} {event.operation}", event.binding, f"not served: {event.reason}"
            )
        else:
            self._played += 1
            if not self._quiet:
                self._print_call(event)

    def show_summary(self, player: Player) -> None:
        """Print the numbers of calls played, missed and not requested."""
        unused = player.unused_calls()
        counts = [
            f"{_format_count(self._played, 'call')} played",
            _format_count(len(player.misses), "miss", "misses"),
        ]
        if player.allowed_misses:
            counts.append(
                f"{_format_count(len(player.allowed_misses), 'call')} answered despite differences"
            )
        if player.masked_matches:
            counts.append(
                _format_count(len(player.masked_matches), "masked match", "masked matches")
            )
        counts.append(f"{_format_count(len(unused), 'recorded call')} not requested")
        self._err(", ".join(counts))
        if unused:
            listed = ", ".join(f"{call.place} {call.operation}" for call in unused[:_MAX_UNUSED])
            more = f" and {len(unused) - _MAX_UNUSED} more" if len(unused) > _MAX_UNUSED else ""
            self._err(f"not requested: {listed}{more}")

    def close(self) -> None:
        """Wait until all lines are printed."""
        self._out.flush(_CLOSE_SECONDS)
        self._err.flush(_CLOSE_SECONDS)

    def _print_card_note(self, cards: ReplayCards) -> None:
        if cards.has_card:
            listed = ", ".join(_BINDING_NAMES[each] for each in cards.offered_bindings)
            self._err(f"the agent card lists {listed or 'no interface'}, with URLs that lead here")
        for text, hint in cards.card_notes():
            self._err(f"a2a-proxy: warning: {text}")
            if hint:
                self._err(f"a2a-proxy: hint: {hint}")

    def _print_lines(self, text: str) -> None:
        """Print lines in which peers' text is visible, so that it has no line breaks of its own."""
        for line in text.split("\n"):
            self._out(line)

    def _print_call(self, event: PlayedCall) -> None:
        how = ColouredWord(event.outcome, _OUTCOME_COLOURS.get(event.outcome, ""))
        took = (
            f"{event.duration / 1e6:.1f} ms"
            if event.duration < 1e9
            else f"{event.duration / 1e9:.1f} s"
        )
        spoken = f"{event.binding} {event.dialect}"
        self._out(
            f"{event.place:<6} {event.operation}",
            spoken,
            _format_count(event.sent, "message"),
            took,
            how,
        )


class ReplayJsonConsole:
    """Output as JSON."""

    def __init__(self, *, pipe: bool) -> None:
        out = sys.stderr if pipe else sys.stdout  # noqa: TID251 - for its printer
        self._out = Printer(out, lambda count: _encode_event("skipped", count=count))
        self._is_stdio = pipe
        self._played = 0

    def show_start(self, script: ReplayScript, addresses: list[str], cards: ReplayCards) -> None:
        """Print `start`."""
        found = find_unservable(script, (Binding.STDIO,) if self._is_stdio else SERVED_BINDINGS)
        self._print_event(
            "start",
            version=__version__,
            recording=script.name,
            listen=addresses,
            calls=len(script.calls),
            not_served=msgspec.to_builtins(found),
            missing=script.missing,
            faults=script.faults,
            card=[str(each) for each in cards.offered_bindings] if cards.has_card else None,
            warnings=[text for text, _ in cards.card_notes()] if not self._is_stdio else [],
        )

    def show_event(self, event: ReplayReport) -> None:
        """Print `call`, `miss`, `allowed`, `masked`, `webhook` or `not-served`."""
        if isinstance(event, MissedCall):
            self._print_event(
                "miss",
                binding=str(event.binding),
                text=event.miss.full_text(),
                **_miss_detail(event),
            )
        elif isinstance(event, AllowedCall):
            self._print_event(
                "allowed",
                binding=str(event.binding),
                text=event.miss.allowed_text(),
                **_miss_detail(event),
            )
        elif isinstance(event, MaskedCall):
            self._print_event(
                "masked", binding=str(event.binding), text=event.match.text, **event.match.detail()
            )
        elif isinstance(event, WebhookPosted):
            self._print_event("webhook", **msgspec.to_builtins(event))
        elif isinstance(event, UnservedCall):
            self._print_event("not-served", **msgspec.to_builtins(event))
        else:
            self._played += 1
            self._print_event("call", **msgspec.to_builtins(event))

    def show_summary(self, player: Player) -> None:
        """Print `summary`."""
        unused = [call.place for call in player.unused_calls()]
        self._print_event(
            "summary",
            played=self._played,
            misses=len(player.misses),
            loose=len(player.allowed_misses),
            masked=len(player.masked_matches),
            unused=unused,
        )

    def close(self) -> None:
        """Wait until all lines are printed."""
        self._out.flush(_CLOSE_SECONDS)

    def _print_event(self, event: str, **fields: object) -> None:
        self._out(_encode_event(event, **fields))


def make_console(log_format: str, *, quiet: bool, pipe: bool) -> ReplayConsole:
    """Return the console of the chosen log format."""
    return (
        ReplayJsonConsole(pipe=pipe)
        if log_format == "json"
        else ReplayTextConsole(quiet=quiet, pipe=pipe)
    )


def _miss_detail(event: MissedCall | AllowedCall) -> dict[str, Any]:
    return {name: item for name, item in event.miss.error_detail().items() if name != "@type"}


def _encode_event(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields}, ensure_ascii=True, default=str)


def _count_served(script: ReplayScript, found: list[UnservableCalls], binding: Binding) -> int:
    missing = {place for gap in found if gap.binding in (None, binding) for place in gap.places}
    return sum(call.place not in missing for call in script.calls)


def _format_places(places: tuple[str, ...]) -> str:
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return ", ".join(places[:_MAX_PLACES]) + more


def _format_count(number: int, singular: str, plural_form: str = "") -> str:
    return f"{number} {singular if number == 1 else plural_form or singular + 's'}"


def _dropped_lines_note(count: int) -> str:
    return f"({count} lines not shown)"
