"""Build the config of a run from the options. Checks the routes, and opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.cli.archive import ArchiveConfig
from a2a_proxy.cli.errors import UserError
from a2a_proxy.cli.follower_options import FollowerArguments, parse_follower_options
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.model.exchange import LiveMode
from a2a_proxy.relay.edits.card_urls import RewriteMode
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, PortRanges, Route, RouteError, Upstream
from a2a_proxy.relay.tls import Trust

if TYPE_CHECKING:
    from a2a_proxy.telemetry.settings import OtlpSettings

Value = TypeVar("Value")

_EXAMPLE_COMMAND = "a2a-proxy --listen :9000 --upstream localhost:8000"


class ProxyConfig(msgspec.Struct, frozen=True):
    """The config of one run of the proxy."""

    routes: tuple[Route, ...]
    """The pairs of `--listen` and `--upstream`."""
    record: Path | None
    """The recording, or None for a new file in the state directory."""
    redact: tuple[str, ...]
    """Data to redact, as words of a policy."""
    log_format: str
    quiet: bool
    verbose: bool = False
    """Whether the console prints findings of severity INFO too."""
    editing: EditPolicy = EditPolicy()
    limits: JournalLimits = JournalLimits()
    """Limits of the journal."""
    fail_on: str = "never"
    """Lowest severity of a finding that makes the run fail: a name of `Severity` in lower case, or `never`."""
    live: LiveMode = "auto"
    hooks: tuple[str, ...] = ()
    """Names of hooks: an entry point, or `module:Class`."""
    otlp: OtlpSettings | None = None
    """Export to an OpenTelemetry backend."""
    archive: ArchiveConfig | None = None
    metrics: Listen | None = None
    """Address on which Prometheus metrics are served."""
    forwards: tuple[Listen, ...] = ()
    """Addresses of forward proxies."""


class ProxyArguments(FollowerArguments, frozen=True, kw_only=True):
    """The options of `a2a-proxy` as given; the members have the names of the options."""

    listen: tuple[str, ...]
    upstream: tuple[str, ...]
    upstream_grpc: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
    record: Path | None = None
    keep_secrets: bool = False
    log_format: str = "text"
    quiet: bool = False
    verbose: bool = False
    redact: tuple[str, ...] = ()
    redact_policy: Path | None = None
    rewrite_card: RewriteMode = "auto"
    learn_ports: str | None = None
    keep_host: bool = False
    propagate: bool = False
    upstream_ca: Path | None = None
    upstream_insecure: bool = False
    journal_max: str = "4GiB"
    journal_segment: str = "64MiB"
    fail_on: str = "never"
    live: LiveMode = "auto"
    metrics: str | None = None


def proxy_config(arguments: ProxyArguments) -> ProxyConfig:
    """Return the config of the options.

    Raises:
        UserError: an address or a policy is invalid, the options do not pair up, or a hook does not exist.
    """
    routes, forwards = _parse_routes(arguments), _parse_forwards(arguments.forward)
    listeners = [("--listen", text, route.listen) for text, route in zip(arguments.listen, routes, strict=True)]
    listeners += [("--forward", text, listen) for text, listen in zip(arguments.forward, forwards, strict=True)]
    _check_ports(listeners)
    words = policy_words(arguments.redact, arguments.redact_policy, keep_secrets=arguments.keep_secrets)
    config = ProxyConfig(routes, arguments.record, words, arguments.log_format, arguments.quiet)
    ports = PortRanges() if arguments.learn_ports is None else _parse_option(PortRanges.parse, arguments.learn_ports)
    trust = Trust(arguments.upstream_ca, arguments.upstream_insecure)
    limits = JournalLimits(
        segment_bytes=parse_size("--journal-segment", arguments.journal_segment),
        max_bytes=parse_size("--journal-max", arguments.journal_max),
    )
    followers = parse_follower_options(arguments)
    metrics = None
    if arguments.metrics is not None:
        from a2a_proxy.cli.metrics import metrics_listen

        metrics = metrics_listen(arguments.metrics)
    return msgspec.structs.replace(
        config,
        verbose=arguments.verbose or arguments.fail_on == "info",
        editing=EditPolicy(arguments.rewrite_card, arguments.keep_host, trust, arguments.propagate, ports),
        limits=limits,
        fail_on=arguments.fail_on,
        live=arguments.live,
        hooks=followers.hooks,
        otlp=followers.otlp,
        archive=followers.archive,
        metrics=metrics,
        forwards=forwards,
    )


def _parse_routes(arguments: ProxyArguments) -> tuple[Route, ...]:
    """Return the routes. Raises UserError."""
    listen, upstream, grpc = arguments.listen, arguments.upstream, arguments.upstream_grpc
    if listen or upstream or grpc or not arguments.forward:
        _check_option_counts(len(listen), len(upstream), len(grpc))
    return tuple(_parse_route(*texts) for texts in zip(listen, upstream, grpc or (None,) * len(listen), strict=True))


def _parse_forwards(texts: tuple[str, ...]) -> tuple[Listen, ...]:
    """Return the addresses of the forward proxies. Raises UserError."""
    try:
        return tuple(map(Listen.parse, texts))
    except RouteError as wrong:
        raise UserError(
            f"--forward: {wrong.message}", wrong.hint.replace("--listen :9000", "--forward :9900")
        ) from wrong


def _check_option_counts(listens: int, upstreams: int, grpcs: int) -> None:
    if not listens or not upstreams:
        missing = "--listen" if not listens else "--upstream"
        raise UserError(f"{missing} is missing", f"for example: {_EXAMPLE_COMMAND}")
    if listens != upstreams:
        raise UserError(f"{listens} --listen but {upstreams} --upstream", f"they must be paired: {_EXAMPLE_COMMAND}")
    if grpcs and grpcs != listens:
        raise UserError(
            f"{listens} --listen but {grpcs} --upstream-grpc", "give one --upstream-grpc for each --listen, or none"
        )


def _check_ports(listeners: list[tuple[str, str, Listen]]) -> None:
    """Check that listeners, each with its option and text, do not share a port; with port 0 each gets its own. Raises
    UserError."""
    for i, (option, text, second) in enumerate(listeners):
        for other, other_text, first in listeners[:i]:
            if second.port and _hosts_overlap(first, second):
                same = (option, text) == (other, other_text)
                how = "is given twice" if same else f"and {option} {text} are the same port"
                need = "each agent" if option == other == "--listen" else "each listener"
                raise UserError(f"{other} {other_text} {how}", f"{need} needs its own port")


def _hosts_overlap(left: Listen, right: Listen) -> bool:
    return left.port == right.port and not set(left.hosts).isdisjoint(right.hosts)


def _parse_route(listen: str, upstream: str, grpc: str | None) -> Route:
    clients, agent = _parse_option(Listen.parse, listen), _parse_option(Upstream.parse, upstream)
    return Route(clients, agent, _parse_option(Upstream.parse, grpc) if grpc else None)


def _parse_option(parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except RouteError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
