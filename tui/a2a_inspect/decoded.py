"""A frame's payload for the eye: canonical JSON where there is one, text where there is not, never control codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from a2a_inspect.hexdump import hex_lines
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.decoded import decoded
from a2a_proxy.protocol.text import visible

_TEXTS = ("json", "text", "trailers", "control")
"""Schemas of payloads that are text."""


def decoded_lines(frame: Frame, exchange: Exchange | None) -> Iterator[str]:
    """The same as indented lines without control characters."""
    value = decoded(frame, exchange)
    if value is None:
        return
    for line in json_text(value).split("\n"):
        yield visible(line)


def raw_lines(frame: Frame) -> Iterator[str]:
    """The payload as it was on the wire, without control characters: text as text, anything else as a hex dump."""
    if frame.schema not in _TEXTS:
        yield from hex_lines(frame.payload)
        return
    for line in frame.payload.splitlines():
        yield visible(line.decode("utf-8", "replace"))


def json_text(value: Any) -> str:
    """Indented JSON; text as it is."""
    try:
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to be shown"
