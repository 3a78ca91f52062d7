"""The options of `a2a-proxy`, each declared once: a member, its type and default, and its `Option`.

`options` makes the options of the commands from it. Options of the recorder are members of
`RecorderOptions`, which `recorder_config` checks and `session.json` carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.model.option import Compat, Option, RewriteMode, SpanKind, Texts

_RUN = ("run",)
_RUN_AND_STDIO = ("run", "stdio")
_RECORDED = ("run", "stdio", "wrap-card")

_CONTENT = Option(
    help="Include the text of messages and artifacts, as recorded.",
    commands=_RUN_AND_STDIO,
)
_COMPAT = Option(
    help="Add the attribute names of this tool, or of the conventions proposed for A2A; may be "
    "repeated.",
    commands=_RUN_AND_STDIO,
)
_SEGMENT = Option(
    metavar="TIME",
    help="Send a span after each TIME (5m, 1h) of a long call, for backends that drop late spans.",
    commands=_RUN_AND_STDIO,
)


@dataclass(frozen=True, kw_only=True)
class SpanArguments:
    """The options of spans in `a2a-inspect export otlp`."""

    content: Annotated[bool, _CONTENT] = False
    compat: Annotated[tuple[Compat, ...], _COMPAT] = ()
    segment: Annotated[str, _SEGMENT] = ""


@dataclass(frozen=True, kw_only=True)
class ProxyArguments(RecorderOptions):
    """The options of `a2a-proxy` as given, in the order of its help."""

    listen: Annotated[
        Texts,
        Option(
            section="Relay",
            short="-l",
            metavar="[HOST]:PORT",
            help="Address for clients; `:9000` is loopback.",
        ),
    ] = ()
    upstream: Annotated[
        Texts,
        Option(
            short="-u",
            metavar="HOST[:PORT]|URL",
            help="Address of the agent; one for each --listen.",
        ),
    ] = ()
    upstream_grpc: Annotated[
        Texts,
        Option(
            metavar="HOST:PORT",
            help="Address of the agent for HTTP/2, if it has two ports.",
        ),
    ] = ()
    name: Annotated[
        Texts,
        Option(
            metavar="NAME",
            help="Name of the agent in traces and lists; one for each --listen. The default is the "
            "name in its card.",
        ),
    ] = ()
    rewrite_card: Annotated[
        RewriteMode,
        Option(
            help="Rewrite URLs in agent cards to the proxy: URLs of this agent in unsigned cards, "
            "all URLs, or none.",
        ),
    ] = "auto"
    learn_ports: Annotated[
        str | None,
        Option(
            metavar="PORTS",
            help="Further ports of the agent's host that its card may open if --listen is not "
            "loopback: 8001,9000-9010.",
        ),
    ] = None
    keep_host: Annotated[
        bool,
        Option(help="Forward Host and :authority unchanged, to remote upstreams too."),
    ] = False
    webhooks: Annotated[
        str | None,
        Option(
            metavar="[HOST]:PORT",
            help="Let agents deliver push notifications to this port of the proxy, which sends "
            "them to the client's webhook.",
        ),
    ] = None
    webhook_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Address of that port for agents, if it is not the one by which the proxy reaches "
            "them.",
        ),
    ] = None
    restore: Annotated[
        bool,
        Option(
            help="At the end, set push configurations back to the client's webhook where possible.",
        ),
    ] = False
    upstream_ca: Annotated[
        Path | None,
        Option(
            help="Also trust these CA certificates (PEM).",
            commands=_RUN,
        ),
    ] = None
    upstream_insecure: Annotated[
        bool,
        Option(
            help="Do not verify the certificates of https upstreams.",
            commands=_RUN,
        ),
    ] = False
    upstream_proxy: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Reach agents on other machines through this HTTP proxy: "
            "http://[USER:PASSWORD@]HOST:PORT.",
            commands=_RUN,
        ),
    ] = None
    propagate: Annotated[
        bool,
        Option(
            help="Make the proxy a part of each trace: requests are forwarded with its own "
            "traceparent instead of unchanged.",
            commands=_RUN,
        ),
    ] = False
    forward: Annotated[
        Texts,
        Option(
            section="Forward proxy",
            metavar="[HOST]:PORT",
            help="Address of a forward proxy: clients name the agent, with "
            "HTTP_PROXY=http://localhost:PORT.",
        ),
    ] = ()
    intercept: Annotated[
        Texts,
        Option(
            metavar="PATTERN",
            help="Read TLS in tunnels of --forward to these hosts: HOST, *.example.com, HOST:PORT, "
            "private, * (extra: tls).",
            commands=_RUN,
        ),
    ] = ()
    passed: Annotated[
        Texts,
        Option(
            flag="--pass",
            metavar="PATTERN",
            help="Leave TLS to these hosts unread, in spite of --intercept.",
            commands=_RUN,
        ),
    ] = ()
    tls: Annotated[
        bool,
        Option(section="TLS", help="Take TLS as well as plain text at each --listen (extra: tls)."),
    ] = False
    tls_cert: Annotated[
        Path | None,
        Option(
            help="Present this certificate (PEM) to clients instead of those of `a2a-proxy ca`.",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        Option(help="Its private key, if in another file."),
    ] = None
    client_ca: Annotated[
        Path | None,
        Option(
            help="Clients must use TLS and a certificate that one of these authorities (PEM) has "
            "issued.",
        ),
    ] = None
    upstream_cert: Annotated[
        Path | None,
        Option(
            help="Present this certificate (PEM) to upstreams that ask for one.",
        ),
    ] = None
    upstream_key: Annotated[
        Path | None,
        Option(help="Its private key, if in another file."),
    ] = None
    record: Annotated[
        Path | None,
        Option(
            section="Recording",
            help="File of the recording; created or appended to. The default is a new file in the "
            "state directory.",
            commands=("demo", *_RECORDED),
        ),
    ] = None
    journal_max: Annotated[
        str,
        Option(
            metavar="SIZE",
            help="Traffic not yet recorded takes at most this much disk.",
            commands=_RECORDED,
        ),
    ] = "4GiB"
    journal_segment: Annotated[str, Option(help="", hidden=True)] = "64MiB"
    redact_policy: Annotated[
        Path | None,
        Option(
            help="What to redact, from a TOML file.",
            commands=_RECORDED,
        ),
    ] = None
    quiet: Annotated[
        bool,
        Option(
            section="Console and exit code",
            short="-q",
            help="Print no line per exchange; only errors and the summary.",
            commands=_RUN,
        ),
    ] = False
    verbose: Annotated[
        bool,
        Option(
            short="-v",
            help="Print findings of severity info too.",
            commands=_RUN,
        ),
    ] = False
    log_format: Annotated[
        Literal["text", "json"],
        Option(help="Format of the output lines.", commands=_RUN),
    ] = "text"
    fail_on: Annotated[
        Literal["error", "warning", "info", "never"],
        Option(
            help="Exit with 1 if a finding has at least this severity.",
            commands=_RECORDED,
        ),
    ] = "never"
    metrics: Annotated[
        str | None,
        Option(
            section="Metrics and hooks",
            metavar="[HOST]:PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz on this address; `:9464` is "
            "loopback (extra: metrics).",
        ),
    ] = None
    hook: Annotated[
        Texts,
        Option(
            metavar="NAME",
            help="Call this hook for each frame: an installed one, or module:Class. `a2a-inspect "
            "hooks` lists them.",
            commands=_RUN_AND_STDIO,
        ),
    ] = ()
    otlp: Annotated[
        str | None,
        Option(
            section="Traces (OpenTelemetry)",
            metavar="[URL]",
            flag_value="",
            help="Send a span for each call to this OpenTelemetry backend; without a URL to the "
            "one set by OTEL_* (extra: otlp).",
            commands=_RUN_AND_STDIO,
        ),
    ] = None
    otlp_protocol: Annotated[
        Literal["grpc", "http/protobuf"] | None,
        Option(
            help="Protocol of the export; the default follows OTEL_EXPORTER_OTLP_PROTOCOL or the "
            "port (4317 is grpc).",
            commands=_RUN_AND_STDIO,
        ),
    ] = None
    otlp_kind: Annotated[
        SpanKind,
        Option(
            help="Kind of the spans: server if neither clients nor agents send spans of their own.",
            commands=_RUN_AND_STDIO,
        ),
    ] = "internal"
    otlp_frames: Annotated[
        bool,
        Option(
            help="Also send a log record for each frame.",
            commands=_RUN_AND_STDIO,
        ),
    ] = False
    otlp_content: Annotated[bool, _CONTENT] = False
    otlp_compat: Annotated[tuple[Compat, ...], _COMPAT] = ()
    otlp_segment: Annotated[str, _SEGMENT] = ""
    archive: Annotated[
        str,
        Option(
            section="Archive of many machines",
            metavar="URL",
            help="Upload the traffic to an archive: s3://BUCKET/PREFIX, or file:///FOLDER (extra: "
            "lake).",
            commands=_RUN_AND_STDIO,
        ),
    ] = ""
    archive_every: Annotated[
        float,
        Option(
            metavar="SECONDS",
            minimum=1,
            help="Upload after this time at the latest, whatever the size.",
            commands=_RUN_AND_STDIO,
        ),
    ] = 300.0
    archive_id: Annotated[
        str,
        Option(
            metavar="ID",
            help="Name of this proxy in the archive; the default is kept in the state directory.",
            commands=_RUN_AND_STDIO,
        ),
    ] = ""
