"""Build the config of a run from the options. Checks the routes, and opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.authority import require_cryptography
from a2a_proxy.cli.errors import option_errors
from a2a_proxy.cli.faults import make_fault_plan
from a2a_proxy.cli.follower_config import FollowerOptions, parse_follower_options
from a2a_proxy.cli.recorder_config import recorder_options
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.cli.tls import ClientTlsOptions, parse_certificate, parse_client_tls
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.text import shorten_id
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, PortRanges, Route, RouteError, Upstream
from a2a_proxy.relay.tls import Trust

if TYPE_CHECKING:
    from a2a_proxy.relay.host_patterns import InterceptPolicy
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

_MAX_NAME = 100
"""Maximum characters of the name of an agent."""
_EXAMPLE_COMMAND = "a2a-proxy --listen :9000 --upstream localhost:8000"


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The config of one run of the proxy: the options, and what they were checked and parsed to."""

    options: ProxyArguments
    recorder: RecorderOptions
    key_file_note: str
    """What the user should know about the file of `--card-keys`."""
    routes: tuple[Route, ...]
    """The pairs of `--listen` and `--upstream`."""
    forwards: tuple[Listen, ...]
    """Addresses of forward proxies."""
    editing: EditPolicy
    limits: JournalLimits
    """Limits of the journal."""
    followers: FollowerOptions
    metrics: Listen | None
    """Address on which Prometheus metrics are served."""
    client_tls: ClientTlsOptions | None
    """TLS toward clients; None if listeners take plain text only."""
    interception: InterceptPolicy | None
    """TLS that forward proxies open; None if they open none."""
    upstream_proxy: UpstreamProxy | None
    """Another proxy through which upstreams are dialled."""
    webhooks: Listen | None
    """Address on which agents deliver push notifications."""
    webhook_url: str
    """The URL of that address for agents; empty for the address by which the proxy reaches an
    agent."""


def proxy_config(arguments: ProxyArguments) -> ProxyConfig:
    """Return the config of the options.

    Raises:
        UserError: an address or a policy is invalid, the options do not pair up, or a hook does not
        exist.
    """
    routes, forwards = _parse_routes(arguments), _parse_forwards(arguments.forward)
    if arguments.tls and not routes:
        raise UserError(
            "--tls has no effect without --listen", f"for example: {_EXAMPLE_COMMAND} --tls"
        )
    listeners = [
        ("--listen", text, route.listen)
        for text, route in zip(arguments.listen, routes, strict=True)
    ]
    listeners += [
        ("--forward", text, listen)
        for text, listen in zip(arguments.forward, forwards, strict=True)
    ]
    webhooks = _parse_webhooks(arguments, routes)
    if webhooks is not None:
        listeners.append(("--webhooks", str(arguments.webhooks), webhooks))
    _check_ports(listeners)
    ports = (
        PortRanges() if arguments.learn_ports is None else PortRanges.parse(arguments.learn_ports)
    )
    own = parse_certificate("--upstream", arguments.upstream_cert, arguments.upstream_key)
    trust = Trust(arguments.upstream_ca, arguments.upstream_insecure, own)
    upstream_proxy = _parse_upstream_proxy(arguments.upstream_proxy)
    metrics = None
    if arguments.metrics is not None:
        from a2a_proxy.cli.metrics import metrics_listen

        metrics = metrics_listen(arguments.metrics)
    faults = make_fault_plan(arguments.faults)
    recorder, note = recorder_options(
        arguments,
        faults=() if faults is None else tuple(each.text for each in faults.faults),
    )
    return ProxyConfig(
        options=arguments,
        recorder=recorder,
        key_file_note=note,
        routes=routes,
        forwards=forwards,
        editing=EditPolicy(
            arguments.rewrite_card,
            arguments.keep_host,
            trust,
            arguments.propagate,
            ports,
            faults,
        ),
        limits=JournalLimits(
            segment_bytes=parse_size("--journal-segment", arguments.journal_segment),
            max_bytes=parse_size("--journal-max", arguments.journal_max),
        ),
        followers=parse_follower_options(arguments),
        metrics=metrics,
        client_tls=parse_client_tls(
            tls=arguments.tls,
            certificate=arguments.tls_cert,
            key=arguments.tls_key,
            client_ca=arguments.client_ca,
        ),
        interception=_parse_interception(arguments),
        upstream_proxy=upstream_proxy,
        webhooks=webhooks,
        webhook_url=_parse_webhook_url(arguments, routes, upstream_proxy),
    )


def _parse_routes(arguments: ProxyArguments) -> tuple[Route, ...]:
    """Return the routes. Raises UserError."""
    listen, upstream, grpc, names = (
        arguments.listen,
        arguments.upstream,
        arguments.upstream_grpc,
        arguments.name,
    )
    if listen or upstream or grpc or not arguments.forward:
        _check_option_counts(len(listen), len(upstream), len(grpc))
    _check_names(names, len(listen))
    pairs = zip(
        listen, upstream, grpc or (None,) * len(listen), names or ("",) * len(listen), strict=True
    )
    return tuple(_parse_route(*texts) for texts in pairs)


def _parse_forwards(texts: tuple[str, ...]) -> tuple[Listen, ...]:
    """Return the addresses of the forward proxies. Raises UserError."""
    try:
        return tuple(map(Listen.parse, texts))
    except RouteError as wrong:
        hint = wrong.hint.replace("--listen :9000", "--forward :9900").replace(
            "--listen", "--forward"
        )
        raise UserError(f"--forward: {wrong.message}", hint) from wrong


def _parse_webhooks(arguments: ProxyArguments, routes: tuple[Route, ...]) -> Listen | None:
    """Return the address for deliveries. Raises UserError."""
    if arguments.webhooks is None:
        if arguments.webhook_url is not None:
            raise UserError(
                "--webhook-url has no effect without --webhooks", "for example: --webhooks :9100"
            )
        if arguments.restore:
            raise UserError(
                "--restore has no effect without --webhooks",
                "for example: --webhooks :9100 --restore",
            )
        return None
    if not routes:
        hint = (
            f"behind --forward, notifications pass by themselves; for one agent: {_EXAMPLE_COMMAND}"
        )
        raise UserError("--webhooks has no effect without --listen", hint)
    try:
        return Listen.parse(arguments.webhooks)
    except RouteError as wrong:
        hint = wrong.hint.replace("--listen :9000", "--webhooks :9100").replace(
            "--listen", "--webhooks"
        )
        if "://" in arguments.webhooks:
            hint = (
                "write the port only, and the URL for agents: --webhooks :9100 --webhook-url "
                "https://proxy.example"
            )
        raise UserError(f"--webhooks: {wrong.message}", hint) from wrong


def _parse_webhook_url(
    arguments: ProxyArguments, routes: tuple[Route, ...], proxy: UpstreamProxy | None
) -> str:
    """Return the base of the URLs that agents get, or an empty text. `proxy` is that of
    `--upstream-proxy`. Raises UserError."""
    if arguments.webhook_url is None:
        upstreams = [
            each for route in routes for each in (route.upstream, route.grpc) if each is not None
        ]
        if (
            arguments.webhooks is not None
            and proxy is not None
            and any(map(proxy.leads_to, upstreams))
        ):
            raise UserError(
                "--webhooks with --upstream-proxy needs --webhook-url, because agents do not see "
                "the proxy's address",
                "write the address at which agents reach the proxy: --webhook-url "
                "https://proxy.example",
            )
        return ""
    from a2a_proxy.relay.webhooks.agent_urls import parse_webhook_url

    return parse_webhook_url(arguments.webhook_url)


def _parse_interception(arguments: ProxyArguments) -> InterceptPolicy | None:
    """Return what forward proxies open. Raises UserError."""
    option = "--intercept" if arguments.intercept else "--pass"
    if not arguments.intercept and not arguments.passed:
        return None
    if not arguments.forward:
        hint = (
            "only tunnels of a forward proxy are opened: --forward :9900; for one agent: --listen "
            ":9000 --tls"
        )
        raise UserError(f"{option} has no effect without --forward", hint)
    if not arguments.intercept:
        raise UserError(
            "--pass has no effect without --intercept", "without --intercept all TLS passes unread"
        )
    require_cryptography("--intercept")
    from a2a_proxy.relay.host_patterns import HostPattern, InterceptPolicy

    with option_errors("--intercept"):
        intercept = tuple(map(HostPattern.parse, arguments.intercept))
    with option_errors("--pass"):
        return InterceptPolicy(intercept, tuple(map(HostPattern.parse, arguments.passed)))


def _parse_upstream_proxy(text: str | None) -> UpstreamProxy | None:
    if text is None:
        return None
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

    return UpstreamProxy.parse(text)


def _check_option_counts(listens: int, upstreams: int, grpcs: int) -> None:
    if not listens or not upstreams:
        missing = "--listen" if not listens else "--upstream"
        raise UserError(f"{missing} is missing", f"for example: {_EXAMPLE_COMMAND}")
    if listens != upstreams:
        raise UserError(
            f"{listens} --listen but {upstreams} --upstream",
            f"they must be paired: {_EXAMPLE_COMMAND}",
        )
    if grpcs and grpcs != listens:
        raise UserError(
            f"{listens} --listen but {grpcs} --upstream-grpc",
            "give one --upstream-grpc for each --listen, or none",
        )


def _check_names(names: tuple[str, ...], listens: int) -> None:
    if names and len(names) != listens:
        hint = 'give one --name for each --listen, --name "" for one whose card names it, or none'
        raise UserError(f"{listens} --listen but {len(names)} --name", hint)
    for name in names:
        if len(name) > _MAX_NAME or not name.isprintable():
            raise UserError(
                f"--name {make_visible(shorten_id(name, 20))} is not a name",
                f"a name has at most {_MAX_NAME} printable characters, for example: --name desk",
            )


def _check_ports(listeners: list[tuple[str, str, Listen]]) -> None:
    """Check that listeners, each with its option and text, do not share a port; with port 0 each
    gets its own. Raises UserError."""
    for i, (option, text, second) in enumerate(listeners):
        for other, other_text, first in listeners[:i]:
            if (
                second.port
                and first.port == second.port
                and not set(first.hosts).isdisjoint(second.hosts)
            ):
                same = (option, text) == (other, other_text)
                how = "is given twice" if same else f"and {option} {text} are the same port"
                need = "each agent" if option == other == "--listen" else "each listener"
                raise UserError(f"{other} {other_text} {how}", f"{need} needs its own port")


def _parse_route(listen: str, upstream: str, grpc: str | None, name: str) -> Route:
    try:
        clients = Listen.parse(listen)
    except RouteError as wrong:
        more = "; to take https:// there: --tls" if listen[:8].lower() == "https://" else ""
        raise UserError(wrong.message, wrong.hint + more) from wrong
    return Route(
        clients, Upstream.parse(upstream), Upstream.parse(grpc) if grpc else None, name.strip()
    )
