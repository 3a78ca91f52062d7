"""The config of everything that follows a run."""

from __future__ import annotations

import msgspec

from a2a_proxy.cli.archive import ArchiveConfig, archive_config
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.span_options import parse_span_options
from a2a_proxy.model.errors import UserError
from a2a_proxy.telemetry.settings import OtlpSettings


class FollowerOptions(msgspec.Struct, frozen=True):
    """Everything that follows a run."""

    hooks: tuple[str, ...] = ()
    """Names of hooks: an entry point, or `module:Class`."""
    otlp: OtlpSettings | None = None
    """Export to an OpenTelemetry backend."""
    archive: ArchiveConfig | None = None


def parse_follower_options(arguments: ProxyArguments) -> FollowerOptions:
    """Return the followers that the options request.

    Raises:
        UserError: a hook does not exist, an endpoint or archive is invalid, or a required package
        is not installed.
    """
    if arguments.hook:
        from a2a_proxy.cli.hooks import check_hooks

        check_hooks(arguments.hook)
    archive = None
    otlp = _parse_otlp_options(arguments)
    if arguments.archive or arguments.archive_id:
        archive = archive_config(arguments.archive, arguments.archive_every, arguments.archive_id)
    return FollowerOptions(arguments.hook, otlp, archive)


def _parse_otlp_options(arguments: ProxyArguments) -> OtlpSettings | None:
    if arguments.otlp is not None:
        from a2a_proxy.cli.otlp import otlp_settings

        shape = parse_span_options(
            arguments.otlp_kind,
            content=arguments.otlp_content,
            compat=arguments.otlp_compat,
            segment=arguments.otlp_segment,
            segment_option="--otlp-segment",
        )
        return otlp_settings(
            arguments.otlp, arguments.otlp_protocol or "", shape, frames=arguments.otlp_frames
        )
    refinements = (
        arguments.otlp_protocol,
        arguments.otlp_frames,
        arguments.otlp_content,
        arguments.otlp_compat,
    )
    if any(refinements) or arguments.otlp_segment:
        raise UserError(
            "options --otlp-... have no effect without --otlp",
            "for example: --otlp http://localhost:4318",
        )
    return None
