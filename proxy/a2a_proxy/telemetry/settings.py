"""Settings of a live export, as passed to its process."""

import msgspec

from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.target import OtlpTarget


class OtlpSettings(msgspec.Struct, frozen=True):
    """Settings of a live export."""

    target: OtlpTarget
    shape: SpanOptions = DEFAULT_SPAN_OPTIONS
    frames: bool = False
    """Whether to send a log record for each frame as well."""
    metrics: bool = True
    logs: bool = True
    """Whether to send log records: of long calls, and of frames if `frames` is set."""


encode = msgspec.json.encode
"""Encode settings as one command-line word. Contains no secrets: headers are in the environment."""


def decode_settings(word: str) -> OtlpSettings:
    """Decode a word that `encode` returned."""
    return msgspec.json.decode(word, type=OtlpSettings)
