"""The config of everything that follows a run, from the options of `follower_options`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.span_options import parse_span_options
from a2a_proxy.model.errors import UserError

if TYPE_CHECKING:
    from a2a_proxy.cli.archive import ArchiveConfig
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.span_options import Compat, SpanKind


class FollowerOptions(msgspec.Struct, frozen=True):
    """Everything that follows a run."""

    hooks: tuple[str, ...] = ()
    """Names of hooks: an entry point, or `module:Class`."""
    otlp: OtlpSettings | None = None
    """Export to an OpenTelemetry backend."""
    archive: ArchiveConfig | None = None


class FollowerArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The follower options as given; the members have the names of the options."""

    hook: tuple[str, ...] = ()
    otlp: str | None = None
    otlp_protocol: str | None = None
    otlp_kind: SpanKind = "internal"
    otlp_frames: bool = False
    otlp_content: bool = False
    otlp_compat: tuple[Compat, ...] = ()
    otlp_segment: str = ""
    archive: str = ""
    archive_every: float = 300.0
    archive_id: str = ""


def parse_follower_options(arguments: FollowerArguments) -> FollowerOptions:
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
        from a2a_proxy.cli.archive import archive_config

        archive = archive_config(arguments.archive, arguments.archive_every, arguments.archive_id)
    return FollowerOptions(arguments.hook, otlp, archive)


def _parse_otlp_options(arguments: FollowerArguments) -> OtlpSettings | None:
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
