"""Build the config of a run from the options. Checks the routes, and opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.cli.archive import ArchiveConfig
from a2a_proxy.cli.errors import UserError
from a2a_proxy.cli.follower_options import parse_follower_options
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
    record: Path | None
    """The recording, or None for a new file in the state directory."""
    redact: tuple[str, ...]
    """Data to redact, as words of a policy."""
    log_format: str
    quiet: bool
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


def proxy_config(
    *,
    listen: tuple[str, ...],
    upstream: tuple[str, ...],
    upstream_grpc: tuple[str, ...],
    record: Path | None,
    keep_secrets: bool,
    log_format: str,
    quiet: bool,
    redact: tuple[str, ...] = (),
    redact_policy: Path | None = None,
    rewrite_card: RewriteMode = "auto",
    learn_ports: str | None = None,
    keep_host: bool = False,
    propagate: bool = False,
    upstream_ca: Path | None = None,
    upstream_insecure: bool = False,
    journal_max: str = "4GiB",
    journal_segment: str = "64MiB",
    fail_on: str = "never",
    live: LiveMode = "auto",
    metrics: str | None = None,
    **followers: Any,
) -> ProxyConfig:
    """Return the config of the options; `followers` are the arguments of `parse_follower_options`.

    Raises:
        UserError: an address or a policy is invalid, the options do not pair up, or a hook does not exist.
    """
    _check_option_counts(len(listen), len(upstream), len(upstream_grpc))
    grpc = upstream_grpc or (None,) * len(listen)
    routes = tuple(_parse_route(*texts) for texts in zip(listen, upstream, grpc, strict=True))
    _check_ports(listen, routes)
    ports = PortRanges() if learn_ports is None else _parsed(PortRanges.parse, learn_ports)
    editing = EditPolicy(rewrite_card, keep_host, Trust(upstream_ca, upstream_insecure), propagate, ports)
    limits = JournalLimits(
        segment_bytes=parse_size("--journal-segment", journal_segment),
        max_bytes=parse_size("--journal-max", journal_max),
    )
    words = policy_words(redact, redact_policy, keep_secrets=keep_secrets)
    wants = parse_follower_options(**followers)
    checks = (limits, fail_on, live, wants.hooks, wants.otlp, wants.archive)
    numbers = None
    if metrics is not None:
        from a2a_proxy.cli.metrics import metrics_listen

        numbers = metrics_listen(metrics)
    return ProxyConfig(routes, record, words, log_format, quiet, editing, *checks, metrics=numbers)


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


def _check_ports(texts: tuple[str, ...], routes: tuple[Route, ...]) -> None:
    """Check that listeners do not share a port; with port 0 each gets its own. Raises UserError."""
    for i, second in enumerate(routes):
        for first, text in zip(routes[:i], texts, strict=False):
            if second.listen.port and _hosts_overlap(first.listen, second.listen):
                how = "is given twice" if text == texts[i] else f"and --listen {texts[i]} are the same port"
                raise UserError(f"--listen {text} {how}", "each agent needs its own port")


def _hosts_overlap(left: Listen, right: Listen) -> bool:
    return left.port == right.port and not set(left.hosts).isdisjoint(right.hosts)


def _parse_route(listen: str, upstream: str, grpc: str | None) -> Route:
    clients, agent = _parsed(Listen.parse, listen), _parsed(Upstream.parse, upstream)
    return Route(clients, agent, _parsed(Upstream.parse, grpc) if grpc else None)


def _parsed(parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except RouteError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
