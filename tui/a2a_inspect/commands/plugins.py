"""`a2a-inspect plugins`: call hooks for a recording, or list hooks and extensions."""

import contextlib
import functools
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from a2a_inspect.data.recording_choice import open_recording, resolve_recording
from a2a_inspect.widgets.table import table_lines
from a2a_proxy.cli.errors import print_error, state_directory_errors
from a2a_proxy.cli.hooks import check_hooks
from a2a_proxy.follower.supervisor import FollowerSupervisor, HookReport
from a2a_proxy.hooks.extensions import ExtensionPlugin, load_extensions, usable_extensions
from a2a_proxy.hooks.find import LIST_COMMAND, installed_hooks
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import print_line, print_note
from a2a_proxy.protocol.extensions import Extension
from a2a_proxy.protocol.extensions.registry import BUILT_IN
from a2a_proxy.protocol.text import make_visible

_PROGRAM = "a2a-inspect"
_STOP_TIMEOUT = 10.0
"""Seconds that a hook may take to finish its current call after Ctrl-C."""
_POLL_INTERVAL = 0.1
EXIT_UNUSABLE = 2
"""Exit code if a plug-in cannot be used, whether or not its code had to run to find that out."""


def list_plugins() -> int:
    """Print one line per installed hook and per known extension. Returns 2 if an extension cannot
    be used."""
    plugins = _load_once()
    rows = [("hook", each.name, each.reference, each.package) for each in installed_hooks()]
    known = [(each.extension, each.package or each.reference) for each in plugins]
    known += [(each, "built in") for each in BUILT_IN]
    rows += [
        ("extension", each.name, uri, source)
        for each, source in known
        if each is not None
        for uri in each.uris
    ]
    cells = [tuple(map(make_visible, row)) for row in rows]
    for line in table_lines(("KIND", "NAME", "CLASS OR URI", "FROM"), cells):
        print_line(line)
    failures = [each for each in plugins if each.failure]
    for each in failures:
        print_note(f"{_PROGRAM}: error: {_failure_words(each)}")
    return EXIT_UNUSABLE if failures else 0


def plugin_extensions() -> tuple[Extension, ...]:
    """Return the extensions of plug-ins; a plug-in that cannot be used is reported on stderr."""
    plugins = _load_once()
    for each in plugins:
        if each.failure:
            print_note(f"{_PROGRAM}: warning: {_failure_words(each)}")
    return usable_extensions(plugins)


_load_once = functools.cache(load_extensions)


def _failure_words(plugin: ExtensionPlugin) -> str:
    package = f" of {plugin.package}" if plugin.package else ""
    return make_visible(f"extension {plugin.reference}{package}: {plugin.failure}")


def call_hooks(recording: Path | None, names: tuple[str, ...], *, follow: bool) -> int:
    """Call each hook for every session; the output of hooks goes to stdout.

    Returns 1 if a hook failed or did not see all frames, 2 if a hook cannot be used.

    Raises:
        UserError: the hook or the recording does not exist, or the state directory cannot be used.
    """
    if not names:
        raise UserError("--hook is missing", f"list the installed hooks: {LIST_COMMAND}")
    check_hooks(names)
    path = resolve_recording(recording)
    with open_recording(path):
        pass  # reports an unreadable file once here, not once in each hook
    with state_directory_errors():
        supervisors = [
            FollowerSupervisor(
                name, str(path.absolute()), _print_message, follow=follow, prints=True
            )
            for name in names
        ]
    with _interrupt_event() as stop:
        for supervisor in supervisors:
            supervisor.start()
        _wait_for_supervisors(supervisors, stop)
    return max(
        [_print_summary(supervisor.finish(), stopped=stop.is_set()) for supervisor in supervisors]
    )


def _wait_for_supervisors(supervisors: list[FollowerSupervisor], stop: threading.Event) -> None:
    """Wait until all hooks have ended, or for a bounded time after `stop`."""
    while not (stop.is_set() or all(supervisor.wait(_POLL_INTERVAL) for supervisor in supervisors)):
        pass
    if stop.is_set():
        for supervisor in supervisors:
            supervisor.stop()
        for supervisor in supervisors:
            supervisor.wait(_STOP_TIMEOUT)


@contextlib.contextmanager
def _interrupt_event() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; a second Ctrl-C raises KeyboardInterrupt."""
    event = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def first(*_: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, first)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _print_summary(report: HookReport, *, stopped: bool) -> int:
    calls = f"{report.calls:,} call{'' if report.calls == 1 else 's'}"
    if report.outcome == "failed":
        return EXIT_UNUSABLE
    whole = report.outcome == "done" or (stopped and report.outcome == "stopped")
    failed = f", {report.errors:,} of them failed: see {report.log}" if report.errors else ""
    end = "" if whole else "; it did not see all frames"
    print_note(f"{_PROGRAM}: hook {report.name}: {calls}{failed}{end}")
    return int(bool(report.errors) or not whole)


def _print_message(message: str, hint: str) -> None:
    print_error(_PROGRAM, message, hint)
