"""One run of `a2a-proxy run`: listen, start the command, relay its traffic and signals, end as it
ended."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.authority import is_cryptography_installed, load_authority, trust_variables
from a2a_proxy.cli.command.bypass import BypassWatch
from a2a_proxy.cli.command.client_processes import ClientProcesses
from a2a_proxy.cli.command.environment import (
    JAVA_OPTIONS,
    FoundProxy,
    JavaOptions,
    command_environment,
    find_proxy,
    started_environment,
)
from a2a_proxy.cli.command.launcher import Launcher, adopt_orphans
from a2a_proxy.cli.config import ProxyConfig, proxy_config
from a2a_proxy.cli.console import Console, make_console
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.run import ProxyRun
from a2a_proxy.installation import install_command
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.host_patterns import PRIVATE
from a2a_proxy.relay.run import run_loop
from a2a_proxy.relay.stdio_agent import exit_like, next_signal, stop_on_signal

_LISTEN = "127.0.0.1:0"
_END_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""Signals that end the proxy while the command does not run."""


def run_command(
    command: tuple[str, ...], arguments: ProxyArguments, *, java: bool = False
) -> NoReturn:
    """Run the command with its traffic through the proxy, and end as it did, or with 1 if `fail_on`
    requires it. With `java` JVMs use the proxy too.

    Raises:
        UserError: the command cannot be started, or its traffic cannot be recorded.
    """
    if not command:
        raise UserError("the command is missing", "for example: a2a-proxy run -- python system.py")
    if not arguments.intercept and is_cryptography_installed():
        arguments = replace(arguments, intercept=(PRIVATE,))
    config = proxy_config(replace(arguments, forward=(_LISTEN,)))
    adopt_orphans()
    launcher = Launcher(command)
    trust: dict[str, str] = {}
    problems: list[UserError] = []
    if config.interception is not None:
        trust, problems = trust_variables(load_authority("--intercept").certificate_pem)
        config = _trust_as_command(config)
    java_options = _make_java_options(trust) if java else None
    out = sys.stderr  # noqa: TID251 - for its printer
    console = make_console(config.options, out)
    if config.interception is None:
        console.show_note(f"TLS passes unread; to read it: {install_command('tls')}", loud=False)
    for problem in problems:  # the command may work nevertheless, as it does without the proxy
        console.show_note(f"{problem.message}; the command gets it unchanged", problem.hint)
    environment = started_environment()
    if config.upstream_proxy is None and (found := find_proxy(environment)) is not None:
        config = msgspec.structs.replace(config, upstream_proxy=found.proxy)
        _show_proxy(found, console)
    exit_like(
        run_loop(
            CommandRun(config, launcher, {**environment, **trust}, console, java_options).run()
        )
    )


def _trust_as_command(config: ProxyConfig) -> ProxyConfig:
    """Return the config with which the proxy trusts the authorities that the environment names for
    the command."""
    from a2a_proxy.certificates.trust import find_trusted_files

    trust = msgspec.structs.replace(config.editing.trust, of_clients=find_trusted_files(os.environ))
    return msgspec.structs.replace(
        config, editing=msgspec.structs.replace(config.editing, trust=trust)
    )


def _make_java_options(trust: Mapping[str, str]) -> JavaOptions:
    """Return the options of JVMs, which trust what the variables `trust` name. Raises UserError."""
    if not trust or "-Djavax.net.ssl.trustStore=" in os.environ.get(JAVA_OPTIONS, ""):
        return JavaOptions()
    from a2a_proxy.certificates.trust import (
        BUNDLE_VARIABLES,
        TRUSTSTORE_PASSWORD,
        make_java_truststore,
    )

    bundle = next((trust[name] for name in BUNDLE_VARIABLES if name in trust), "")
    if not bundle:
        return JavaOptions()
    try:
        with state_directory_errors():
            path = make_java_truststore(Path(bundle).read_bytes(), file_layout.authority_dir())
    except ImportError:
        raise UserError(
            "--java needs cryptography 45", "install it: pip install -U cryptography"
        ) from None
    return JavaOptions(str(path), TRUSTSTORE_PASSWORD)


def _show_proxy(found: FoundProxy, console: Console) -> None:
    if found.proxy is None:
        console.show_note(
            f"{found.text} is not used, and agents are reached directly: "
            f"{'; '.join(found.problems)}",
            "name an HTTP proxy: --upstream-proxy http://HOST:PORT",
        )
        return
    console.show_note(f"agents on other machines are reached through {found.text}", loud=False)
    for problem in found.problems:
        console.show_note(problem, "write hosts and domains in NO_PROXY")


class CommandRun:
    """The command and the proxy around it."""

    def __init__(
        self,
        config: ProxyConfig,
        launcher: Launcher,
        environment: Mapping[str, str],
        console: Console,
        java: JavaOptions | None = None,
    ) -> None:
        self._config = config
        self._launcher = launcher
        self._environment = environment
        self._java = java
        self._console = console
        self._processes = ClientProcesses()
        self._proxy = ProxyRun(config, self._run_to_end, console, self._processes)
        self._ended = asyncio.Event()
        self._is_running = False
        """Whether the command has been started and has not ended."""
        self._early_signal = 0
        """Signal that arrived before the command was started."""

    async def run(self) -> int:
        """Return the end of the command as `Launcher.poll` does; 1 if the recording has a failing
        finding."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._relay_signals, name="signals", daemon=True).start()
        try:
            failing = await self._proxy.run()
        finally:
            self._launcher.cancel()
            self._processes.close()
        if self._proxy.connections == 0:
            self._console.show_note(
                "nothing passed through the proxy: no process of the command used HTTP_PROXY",
                "see which programs do: a2a-inspect help run",
            )
            self._console.close()
        code = self._launcher.poll() if not self._early_signal else -self._early_signal
        return failing if code == 0 and self._config.options.fail_on != "never" else code or 0

    async def _run_to_end(self, addresses: list[str]) -> None:
        """Start the command, and return when it has ended. Raises UserError."""
        if self._early_signal:
            return
        self._is_running = True
        self._launcher.start(command_environment(self._environment, addresses[0], self._java))
        ports = {int(address.rpartition(":")[2]) for address in addresses}
        watch = BypassWatch(self._launcher.guard, ports, self._show_bypass)
        watch.start()
        await self._ended.wait()
        self._is_running = False
        await asyncio.to_thread(watch.stop)
        if remaining := watch.list_processes():
            self._console.show_note(
                f"the command has ended, and {', '.join(remaining)} still run: their requests "
                f"cannot pass any more",
                "keep the command running as long as its processes, for example with: wait",
            )

    def _show_bypass(self, line: str, reason: str) -> None:
        """Show a line of the watch, whose thread calls this."""
        text = f"{line}: {reason}" if reason else line
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._console.show_note, text)

    def _relay_signals(self) -> None:
        """Pass signals on to the command while it runs; otherwise they end the proxy."""
        while True:
            number, to_send = next_signal()
            with suppress(RuntimeError):  # the loop has ended
                if number == signal.SIGCHLD:
                    if self._is_running and self._launcher.poll() is not None:
                        self._loop.call_soon_threadsafe(self._ended.set)
                elif self._is_running:
                    if to_send:
                        self._launcher.send_signal(number)
                elif number in _END_SIGNALS:
                    self._loop.call_soon_threadsafe(self._interrupt, number)
            if number == signal.SIGTSTP:
                stop_on_signal(number)

    def _interrupt(self, number: int) -> None:
        if not self._ended.is_set() and not self._is_running:
            self._early_signal = number
        self._proxy.interrupt(number)
