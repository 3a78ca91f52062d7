"""One run of the proxy: listen, start the recorder, relay until stopped, drain, print the
summary."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy import __version__
from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.capture.journal import Journal
from a2a_proxy.cli.capture_watch import CaptureState, CaptureWatch
from a2a_proxy.cli.command.process_table import read_sockets
from a2a_proxy.cli.config import ProxyConfig
from a2a_proxy.cli.console import Console, StartInfo, make_console
from a2a_proxy.cli.end_signals import end_signals
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.fail_on import has_failing_finding
from a2a_proxy.cli.faults import announce_faults, report_missed_faults
from a2a_proxy.cli.followers import Followers, run_followers
from a2a_proxy.cli.metrics import MetricsFollower
from a2a_proxy.cli.recorder_config import make_session_file
from a2a_proxy.cli.tls import make_client_tls, make_interception
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recorder.status import RecorderDone, RecorderFailed, Status
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.card_urls import is_local
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.file_limit import raise_file_limit
from a2a_proxy.relay.host_patterns import PRIVATE
from a2a_proxy.relay.hosts import ResolvedUpstreams, find_self_loop
from a2a_proxy.relay.route import Upstream, is_loopback
from a2a_proxy.relay.run import run_loop
from a2a_proxy.relay.server import ClientProcessesProtocol, Relay
from a2a_proxy.relay.tls import key_log_file

if TYPE_CHECKING:
    from a2a_proxy.redaction import Redactor
    from a2a_proxy.relay.webhooks.service import WebhookService

_END_SECONDS = 1.5
"""Seconds that open connections get after the first Ctrl-C."""
_LEAVE_SECONDS = 1.7
"""Seconds after SIGTERM until much that is not recorded is left to the recorder, which does not
need the proxy any more."""
_MUCH_BYTES = 1 << 20
_DRAIN_NOTE_SECONDS = 1.0
"""Seconds between lines that report the remaining amount."""
_STALLED_DISK_SECONDS = 30.0
"""Seconds after which a disk that writes nothing is not waited for any more."""
_QUIET_SECONDS = 0.3
"""Seconds of waiting without a message."""
_PRIVATE_WORDS = "this machine and private networks"


ProxyWork = Callable[[list[str]], Coroutine[None, None, None]]
"""Work that a run does by itself; it is called with the listening addresses."""


def run_proxy(config: ProxyConfig) -> int:
    """Run the proxy until SIGINT, SIGTERM or SIGHUP, and return the exit code.

    Raises:
        UserError: the proxy cannot start; nothing has been created.
    """
    raise_file_limit()
    return run_loop(ProxyRun(config).run())


class ProxyRun:
    """One run, from the first socket to the last row."""

    def __init__(
        self,
        config: ProxyConfig,
        work: ProxyWork | None = None,
        console: Console | None = None,
        client_processes: ClientProcessesProtocol | None = None,
    ) -> None:
        """Create the run. `work` is called with the listening addresses; the run ends with it, else
        with a signal. Without `client_processes` the processes of clients stay unknown."""
        self.command = ("a2a-proxy", *sys.argv[1:])
        """The command line stored in the recording, after its redaction."""
        self.connections = -1
        """Number of recorded connections; -1 before the end, or if the recording is not
        finished."""
        self._config = config
        self._work = work
        self._client_processes = client_processes
        self._console = console or make_console(config.options)
        self._followers = Followers(run_followers(config.followers, self._console), self._console)
        self._metrics = MetricsFollower(config.metrics, self._console)
        self._webhooks: WebhookService | None = None
        self._redactor: Redactor | None = None
        """Redacts lines that repeat names which clients choose; None without listeners where they
        choose any."""
        self._stop = asyncio.Event()
        self._leave_now = asyncio.Event()
        self._interrupts = 0
        self._leave_at = math.inf
        """When the rest is left to the recorder, in seconds of the monotonic clock."""

    async def run(self) -> int:
        """Relay until stopped, and return the exit code.

        Raises:
            UserError: the proxy cannot start; nothing has been created.
        """
        resolved = await self._resolve_upstreams()
        clock = session_clock()
        client_tls = (
            None if self._config.client_tls is None else make_client_tls(self._config.client_tls)
        )
        config = self._config
        relay = Relay(
            config.routes,
            clock,
            config.editing,
            self._show_note,
            config.forwards,
            client_tls,
            config.upstream_proxy,
            None if config.interception is None else make_interception(config.interception),
        )
        if config.webhooks is not None:
            from a2a_proxy.cli.webhooks import make_webhooks

            self._webhooks = make_webhooks(
                config.webhooks, config.webhook_url, restores=config.options.restore
            )
            relay.take_deliveries(self._webhooks)
        if self._client_processes is not None:
            relay.identify_clients(self._client_processes)
        await self._relay_only(relay)  # first, so that a busy port leaves no files
        try:
            relay.reserve_addresses(await self._metrics.bind_port())
            _refuse_self_loops(relay, resolved)
            with state_directory_errors():
                self._announce_leftovers()
                session = make_session_file(
                    config.options.record,
                    config.recorder,
                    clock(),
                    self.command,
                    reports_receivers=config.webhooks is None and not config.forwards,
                )
                folder = file_layout.create_journal(session)
            self._redactor = await asyncio.to_thread(self._make_redactor)
            supervisor = RecorderSupervisor(folder.path, self._on_status)
            journal = self._open_journal(folder.path, supervisor)
        except BaseException:
            self._metrics.close()
            await relay.stop(0)
            raise
        try:
            self._install_signal_handlers()
            gc.freeze()  # a collection that visits everything loaded would delay others for 20 ms
            session = await self._relay_and_record(relay, journal, supervisor, folder.path, session)
            self._followers.start(session.recording, session.uuid)
            self._metrics.start(session.recording, session.uuid, folder.path)
        except BaseException:
            self._metrics.close()
            supervisor.kill()
            await relay.stop(0)
            journal.close(clock(), _END_SECONDS)
            folder.release_locks()
            file_layout.delete_journal(folder.path)
            raise
        watched = CaptureState(
            folder.path,
            journal.get_stats,
            lambda: supervisor.position,
            lambda: folder.restore_files(session),
        )
        watch = asyncio.ensure_future(CaptureWatch(watched, self._console).run())
        try:
            await self._wait_until_done(relay)
        finally:
            try:
                await self._wait_for_connections(relay)
            finally:
                watch.cancel()
                await self._end_webhooks()
                code = await self._finish_recording(journal, supervisor, clock())
                self._followers.stop_now()  # of a session that was not recorded to its end
                self._metrics.close()
                if self._config.editing.faults is not None:
                    report_missed_faults(self._config.editing.faults, self._console)
                self._delete_empty_recording(supervisor.outcome, session.recording)
                folder.release_locks()
                self._console.close()
        return code

    async def _end_webhooks(self) -> None:
        if self._webhooks is not None:
            from a2a_proxy.cli.webhooks import describe_live_webhooks, restore_webhooks

            if self._config.options.restore:
                trust, proxy = self._config.editing.trust, self._config.upstream_proxy
                self._show_note(await restore_webhooks(self._webhooks, trust, proxy))
            if (note := describe_live_webhooks(self._webhooks.registry)) is not None:
                self._show_note(note)

    async def _finish_recording(
        self, journal: Journal, supervisor: RecorderSupervisor, session_file: int
    ) -> int:
        """Write the journal's end, let the recorder finish, and return the exit code."""
        journal.append_end(session_file)
        written = await self._wait_for_disk(journal)
        supervisor.close_wake_pipe()
        return (
            await self._drain_recorder(supervisor)
            if written
            else self._report_recorder_lag(supervisor)
        )

    def _delete_empty_recording(
        self, outcome: RecorderDone | RecorderFailed | None, path: str
    ) -> None:
        """Delete an empty recording that the user did not name, because it must not be taken for
        the newest one."""
        if (
            self._config.options.record is None
            and isinstance(outcome, RecorderDone)
            and not (outcome.connections or outcome.lost)
        ):
            from a2a_proxy.recorder.recording_output import (
                delete_single_session_file,  # imports SQLite: the relay starts without it
            )

            delete_single_session_file(path)

    def _open_journal(self, folder: Path, supervisor: RecorderSupervisor) -> Journal:
        with state_directory_errors():
            call_later = asyncio.get_running_loop().call_later
            return Journal(folder, call_later, self._config.limits, wake_fd=supervisor.wake_write)

    async def _wait_until_done(self, relay: Relay) -> None:
        """Wait for a signal or the end of the work."""
        stop = asyncio.ensure_future(self._stop.wait())
        if self._work is None:
            await stop
            return
        groups = [addresses for _, addresses in relay.bound_addresses] + relay.forward_addresses
        addresses = [address for group in groups for address in group]
        task = asyncio.ensure_future(self._work(addresses))
        await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        elif not task.cancelled():
            task.result()

    async def _wait_for_connections(self, relay: Relay) -> None:
        """Give open connections a moment to end, unless the user interrupts again."""
        end = asyncio.ensure_future(relay.stop(_END_SECONDS))
        await asyncio.wait((end,), timeout=_QUIET_SECONDS)
        if not end.done():
            self._console.show_stopping(relay.stats.open)
            leave = asyncio.ensure_future(self._leave_now.wait())
            await asyncio.wait((end, leave), return_when=asyncio.FIRST_COMPLETED)
            leave.cancel()
        if not end.done():
            await relay.stop(0)
        await end

    async def _relay_only(self, relay: Relay) -> None:
        await relay.bind_listeners()

    async def _relay_and_record(
        self,
        relay: Relay,
        journal: Journal,
        supervisor: RecorderSupervisor,
        folder: Path,
        session: SessionFile,
    ) -> SessionFile:
        routes = self._describe_routes(relay)
        forwards = relay.forward_addresses
        listens = tuple(
            ", ".join(addresses) for addresses in (*(one for one, _, _ in routes), *forwards)
        )
        upstreams = tuple(
            f"{upstream} (HTTP/2 to {grpc})" if grpc else upstream for _, upstream, grpc in routes
        )
        upstreams += ("agents that clients name (--forward)",) * len(forwards)
        names = (*(route.name for route, _ in relay.bound_addresses), *("",) * len(forwards))
        session = msgspec.structs.replace(
            session, listens=listens, upstreams=upstreams, names=names if any(names) else ()
        )
        file_layout.write_session(folder, session)
        # Clients wait in the kernel until the recorder has the descriptors that it needs.
        accept = partial(relay.accept_connections, journal)
        begin = partial(asyncio.get_running_loop().call_soon_threadsafe, accept)
        answer = await asyncio.to_thread(supervisor.start, on_launch=begin)
        if isinstance(answer, RecorderFailed):
            raise UserError(answer.message, answer.hint)
        endless = self._work is None
        redact, spans_to = self._config.recorder.redact, self._followers.span_backend
        self._console.show_start(
            StartInfo(__version__, routes, answer.path, redact, endless, forwards, spans_to)
        )
        if self._config.editing.trust.insecure:
            self._console.show_note(
                "certificates of https upstreams are NOT verified: anyone on the way can read and "
                "change the traffic",
                "trust a CA instead: --upstream-ca FILE",
            )
        if self._config.editing.faults is not None:
            announce_faults(self._config.editing.faults, self._console)
        if self._config.key_file_note:
            self._console.show_note(
                self._config.key_file_note, "keep private keys where cards are signed"
            )
        self._announce_tls()
        if self._webhooks is not None:
            from a2a_proxy.cli.webhooks import describe_webhooks

            for note in describe_webhooks(
                relay.webhook_addresses, self._config.routes, self._config.webhook_url
            ):
                self._show_note(note)
        self._announce_interception(relay)
        self._warn_of_open_proxy(relay)
        self._warn_of_unused_ports(relay)
        self._warn_of_silent_upstreams()
        return session

    def _announce_tls(self) -> None:
        """Tell the user what clients must trust, and that TLS keys are written to a file."""
        tls = self._config.client_tls
        if tls is not None:
            how = (
                "certificates of its own authority"
                if tls.own is None
                else f"the certificate in {tls.own.certificate}"
            )
            hint = (
                'clients must trust it: eval "$(a2a-proxy ca env)", or a2a-proxy ca export'
                if tls.own is None
                else ""
            )
            self._console.show_note(
                f"the proxy takes TLS at each --listen, with {how}", hint, loud=False
            )
        has_tls = bool(
            tls or self._config.forwards
        ) or any(  # clients of a forward proxy may name https:// origins
            upstream.tls
            for route in self._config.routes
            for upstream in (route.upstream, route.grpc)
            if upstream
        )
        if has_tls and (path := key_log_file()):
            self._console.show_note(
                f"the keys of all TLS connections are written to {path} (SSLKEYLOGFILE)",
                "whoever reads that file can decrypt captures of the traffic; without it: unset "
                "SSLKEYLOGFILE",
            )

    def _warn_of_silent_upstreams(self) -> None:
        """Warn the user of upstreams on this machine without a listening process. The proxy does
        not dial them to find out, because an agent would see a connection that no client made.
        """
        ports = {each.local[1] for each in read_sockets() if each.listening}
        for route in self._config.routes:
            for upstream in filter(None, (route.upstream, route.grpc)):
                if ports and upstream.port not in ports and is_local(upstream.host.lower()):
                    self._console.show_note(
                        f"no process listens at {upstream.address}: requests are answered with 502 "
                        f"until one does",
                        "start the agent, or name its port: --upstream localhost:PORT",
                    )

    def _announce_interception(self, relay: Relay) -> None:
        policy = self._config.interception
        if policy is None:
            return
        hosts = ", ".join(
            _PRIVATE_WORDS if each.text == PRIVATE else each.text for each in policy.intercept
        )
        if self._work is not None:
            self._console.show_note(f"TLS to {hosts} is opened", loud=False)
        else:
            self._console.show_note(
                f"TLS to {hosts} is opened: clients must trust the proxy",
                f'in their shell: eval "$(a2a-proxy ca env --forward '
                f'{relay.forward_addresses[0][0]})"',
                loud=False,
            )

    def _warn_of_open_proxy(self, relay: Relay) -> None:
        """Warn the user of forward proxies that other machines can reach."""
        for addresses in relay.forward_addresses:
            if not all(
                is_loopback(address.rpartition(":")[0].strip("[]")) for address in addresses
            ):
                self._console.show_note(
                    f"the forward proxy on {', '.join(addresses)} is open to everybody who reaches "
                    "this machine: it sends their requests anywhere that this machine can reach",
                    "for this machine only: --forward :" + addresses[0].rpartition(":")[2],
                )

    def _warn_of_unused_ports(self, relay: Relay) -> None:
        """Warn the user if `--learn-ports` limits nothing in this run."""
        editing = self._config.editing
        if not editing.learn_ports.ranges:
            return
        if editing.cards == "never":
            self._console.show_note(
                "--learn-ports has no effect: with --rewrite-card never, agent cards open no ports",
                "leave one of the two options out",
            )
        elif relay.is_loopback_only:
            self._console.show_note(
                "--learn-ports has no effect: on loopback, agent cards may open any port of the "
                "agent's host",
                "leave it out; it applies to listeners beyond loopback, such as --listen "
                "0.0.0.0:9000",
            )

    def _describe_routes(self, relay: Relay) -> list[tuple[list[str], str, str]]:
        """Return the listening addresses, the upstream and the upstream for gRPC (or an empty text)
        of each route."""

        def name_upstream(upstream: Upstream | None) -> str:
            if upstream is None:
                return ""
            insecure = upstream.tls and self._config.editing.trust.insecure
            text = (
                upstream.text
                if str(upstream.port) in upstream.text
                else f"{upstream.text} (port {upstream.port})"
            )
            return f"{text} (certificate not verified)" if insecure else text

        return [
            (addresses, name_upstream(route.upstream), name_upstream(route.grpc))
            for route, addresses in relay.bound_addresses
        ]

    def _make_redactor(self) -> Redactor | None:
        """Return a redactor for lines of the relay, if clients choose names there: an origin, or a
        server name."""
        if not self._config.forwards and self._config.client_tls is None:
            return None
        from a2a_proxy.redaction import create_redactor  # plain traffic does without it
        from a2a_proxy.redaction.policy import policy_of

        try:
            return create_redactor(
                file_layout.redaction_key(), policy_of(self._config.recorder.redact)
            )
        except (OSError, ValueError):
            return None  # the recorder does not start without the key, and says so

    def _show_note(self, note: ConsoleNote) -> None:
        text, hint = note.text, note.hint
        if self._redactor is not None:
            text, hint = self._redactor.redact_text(text), self._redactor.redact_text(hint)
        self._console.show_note(make_visible(text), hint, loud=note.loud)

    async def _resolve_upstreams(self) -> ResolvedUpstreams:
        loop = asyncio.get_running_loop()
        resolved: ResolvedUpstreams = {}
        for route in self._config.routes:
            for upstream in filter(None, (route.upstream, route.grpc)):
                if self._config.upstream_proxy is not None and self._config.upstream_proxy.leads_to(
                    upstream
                ):
                    continue
                try:
                    found = await loop.getaddrinfo(
                        upstream.host, upstream.port, type=socket.SOCK_STREAM
                    )
                except OSError as wrong:
                    raise UserError(
                        f"cannot resolve upstream {upstream.text}: {wrong.strerror or wrong}",
                        "check the host name; for an agent on this machine: --upstream "
                        "localhost:PORT",
                    ) from wrong
                resolved[upstream] = [str(where[4][0]) for where in found]
        return resolved

    def _announce_leftovers(self) -> None:
        left = file_layout.find_leftovers()
        if left:
            sessions = "a session was" if len(left) == 1 else f"{len(left)} sessions were"
            self._console.show_note(
                f"{sessions} not recorded to the end", "finish with: a2a-inspect recover"
            )

    def _install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in end_signals():
            loop.add_signal_handler(number, self.interrupt, number)

    def interrupt(self, number: int) -> None:
        """Stop; at the second Ctrl-C or SIGTERM leave the rest to `recover`.

        SIGHUP does not count: the kernel and a shell may each send one, and a supervisor SIGTERM
        too. SIGTERM is often followed by SIGKILL, so the proxy ends soon even if much is left.
        """
        # Whether nothing waits for the end of the recording, and the recorder can outlive this
        # process: the end of the first process of a container ends all others.
        if number == signal.SIGTERM and (
            self._work is None
            and self._config.options.fail_on == "never"
            and not self._followers
            and os.getpid() != 1
        ):
            self._leave_at = min(self._leave_at, time.monotonic() + _LEAVE_SECONDS)
        self._interrupts += number != signal.SIGHUP
        self._stop.set()
        if self._interrupts > 1:
            self._leave_now.set()

    async def _wait_for_disk(self, journal: Journal) -> bool:
        """Wait while the disk writes. Return False if it stalls for too long, or the user
        interrupts again."""
        noted = moved = time.monotonic()
        before = journal.get_stats()
        while not await asyncio.to_thread(journal.wait_until_written, 0.1):
            now, stats = time.monotonic(), journal.get_stats()
            if (stats.position, stats.queued) != (before.position, before.queued):
                moved, before = now, stats
            if self._leave_now.is_set() or now - moved > _STALLED_DISK_SECONDS:
                return False
            if now - noted >= _DRAIN_NOTE_SECONDS:
                self._console.show_note(
                    f"stopping: the disk is slow, {text.format_size(stats.queued)} left to write",
                    loud=False,
                )
                noted = now
        return True

    async def _drain_recorder(self, supervisor: RecorderSupervisor) -> int:
        noted, before = time.monotonic() + _QUIET_SECONDS - _DRAIN_NOTE_SECONDS, -1
        while not await asyncio.to_thread(supervisor.drain_journal, 0.1):
            if self._leave_now.is_set():
                return self._report_recorder_lag(supervisor)
            now, behind = time.monotonic(), supervisor.unrecorded_bytes
            if now >= self._leave_at and behind >= _MUCH_BYTES:
                supervisor.stop_process(None)
                self._console.show_note(
                    f"{text.format_size(behind)} left to record: the recorder finishes without the "
                    f"proxy, and a2a-inspect waits for it",
                    loud=False,
                )
                return 0
            if now - noted >= _DRAIN_NOTE_SECONDS and behind != before:
                self._console.show_draining(behind)
                noted, before = now, behind
        outcome = supervisor.outcome
        if isinstance(outcome, RecorderDone):
            self.connections = outcome.connections
            await self._followers.end_followers(self._leave_now)
            self._console.show_status(outcome)
            return int(has_failing_finding(outcome, self._config.options.fail_on))
        return int(isinstance(outcome, RecorderFailed))

    def _on_status(self, status: Status) -> None:
        """Show a message of the recorder. Its summary is shown later, when no other line can follow
        it (`_drain_recorder`)."""
        if not isinstance(status, RecorderDone):
            self._console.show_status(status)

    def _report_recorder_lag(self, supervisor: RecorderSupervisor) -> int:
        supervisor.kill()
        self._console.show_note(
            "stopped before everything was recorded", "finish with: a2a-inspect recover"
        )
        return 0


def _refuse_self_loops(relay: Relay, resolved: ResolvedUpstreams) -> None:
    """Raises UserError if an upstream leads back to the proxy."""
    upstream = find_self_loop(relay.bound_addresses, resolved)
    if upstream is not None:
        raise UserError(
            f"upstream {upstream.text} leads back to the proxy itself",
            "--upstream must name the agent's port, not the proxy's",
        )
