"""What a live export is to do, as it is handed to its process."""

from __future__ import annotations

import msgspec

from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.target import OtlpTarget


class OtlpSettings(msgspec.Struct, frozen=True):
    """See the module."""

    target: OtlpTarget
    shape: SpanOptions = DEFAULT_SPAN_OPTIONS
    frames: bool = False
    """A log record for each frame as well."""
    metrics: bool = True
    logs: bool = True
    """Word of calls that go on for long, and `frames`."""


encode = msgspec.json.encode
"""Settings -> one word of a command line. No secrets: headers are in the environment."""


def decode(word: str) -> OtlpSettings:
    """Inverse of `encode`."""
    return msgspec.json.decode(word, type=OtlpSettings)
