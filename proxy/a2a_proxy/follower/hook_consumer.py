"""A hook as a consumer: calls its methods, counts and logs their exceptions, and reports each kind
once."""

import inspect
import traceback
from collections.abc import Callable
from io import TextIOBase
from typing import Any

import msgspec

from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.follower.status import HookCallFailed, Status
from a2a_proxy.hooks.find import HookError
from a2a_proxy.hooks.gap import gap_of
from a2a_proxy.hooks.hook import METHODS, Session, overridden_methods
from a2a_proxy.recording.read.rows import SessionRow

_MAX_ERROR_KINDS = 100
"""Number of kinds of errors of one hook that are distinguished."""
_MAX_ERROR_WIDTH = 200
"""Characters of an error in a message; the log has the whole text."""
_METHOD_ROWS = {
    "on_frame": RowKind.FRAME,
    "on_finding": RowKind.FINDING,
    "on_gap": RowKind.FINDING,
    "on_segment_end": RowKind.SEGMENT,
    "on_interruption": RowKind.INTERRUPTION,
    "on_handoff": RowKind.HANDOFF,
    "on_exchange_end": RowKind.EXCHANGE,
}
_ROW_METHODS = {
    kind: method for method, kind in _METHOD_ROWS.items() if kind is not RowKind.FINDING
}


class CallTally(msgspec.Struct):
    """Counters of a hook's calls, over all its sessions and processes."""

    calls: int = 0
    errors: int = 0


class HookErrors:
    """The errors of a hook that were already reported."""

    def __init__(self, name: str, log: TextIOBase, notify: Callable[[Status], None]) -> None:
        self._name = name
        self._log = log
        self._notify = notify
        self._known_errors: set[tuple[str, type[BaseException]]] = set()

    def add_error(self, method: str, error: BaseException) -> None:
        """Log and report an error of a call, if its kind is new."""
        kind = (method, type(error))
        if kind in self._known_errors or len(self._known_errors) >= _MAX_ERROR_KINDS:
            return
        self._known_errors.add(kind)
        self.log_traceback(error)
        self._notify(HookCallFailed(f"hook {self._name}: {method} failed: {describe_error(error)}"))

    def log_traceback(self, error: BaseException) -> None:
        """Write the error's traceback to the log."""
        self._log.write("".join(traceback.format_exception(error)))


def describe_error(error: BaseException) -> str:
    """Return an error in one line."""
    text = " ".join(traceback.format_exception_only(error)[-1].split())
    return text if len(text) <= _MAX_ERROR_WIDTH else text[:_MAX_ERROR_WIDTH] + "…"


class HookConsumer:
    """One instance of a hook, for one session."""

    def __init__(
        self, name: str, make: Callable[[], Any], tally: CallTally, errors: HookErrors
    ) -> None:
        """Create the hook. Raises HookError if `make` fails, or the result has no method that can
        be called."""
        try:
            self._hook = make()
        except BaseException as wrong:
            errors.log_traceback(wrong)
            raise HookError(f"hook {name} cannot be created: {describe_error(wrong)}", "") from None
        self._methods = overridden_methods(self._hook)
        if not self._methods:
            raise HookError(
                f"hook {name} has no method to call", f"give it one of {', '.join(METHODS)}"
            )
        for method in sorted(self._methods):
            if inspect.iscoroutinefunction(getattr(self._hook, method)):
                raise HookError(
                    f"hook {name}: {method} is `async`, and nothing awaits it",
                    "write it without `async`",
                )
        self._tally = tally
        self._errors = errors

    @property
    def row_kinds(self) -> frozenset[RowKind]:
        """The kinds of rows that its methods are called for."""
        return frozenset(kind for method, kind in _METHOD_ROWS.items() if method in self._methods)

    @property
    def takes_batches(self) -> bool:
        """False: each call is made once."""
        return False

    def finish_batch(self) -> bool:
        """Return True: no rows are held back."""
        return True

    def poll(self, unfinished: list[int]) -> None:
        """Do nothing: a hook is called for rows only."""

    def start(self, recording: str, session: SessionRow) -> None:
        """Call `start` with the session."""
        facts = session.facts
        self._call_method(
            "start",
            Session(
                uuid=facts.uuid,
                recording=recording,
                started=facts.started,
                tool=facts.tool,
                command=facts.command,
                listens=facts.listens,
                upstreams=facts.upstreams,
            ),
        )

    def add_row(self, kind: RowKind, value: Any) -> None:
        """Call the method for one value of the model."""
        if kind is RowKind.FINDING:
            self._call_method("on_finding", value)
            gap = gap_of(value)
            if gap is not None:
                self._call_method("on_gap", gap)
        else:
            self._call_method(_ROW_METHODS[kind], value)

    def close(self) -> None:
        """Call `close`: there are no more rows."""
        self._call_method("close")

    def _call_method(self, method: str, *values: Any) -> None:
        if method not in self._methods:
            return
        self._tally.calls += 1
        try:
            getattr(self._hook, method)(*values)
        except (
            BaseException
        ) as wrong:  # includes SystemExit: following continues, whatever a hook raises
            self._tally.errors += 1
            self._errors.add_error(method, wrong)
