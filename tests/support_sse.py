"""Event streams as httpx-sse reads them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def _load_decoders() -> Any:
    """Return the decoders of httpx-sse alone: its front module imports httpx, which nothing else
    here needs."""
    spec = importlib.util.find_spec("httpx_sse")
    assert spec is not None
    package = ModuleType("httpx_sse_parts")
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules[package.__name__] = package
    return importlib.import_module("httpx_sse_parts._decoders")


_DECODERS = _load_decoders()


def decode_stream(wire: bytes) -> Iterator[Any]:
    """Yield the events of a stream, with `event`, `data`, `id` and `retry`."""
    lines, decoder = _DECODERS.SSELineDecoder(), _DECODERS.SSEDecoder()
    text = lines.decode(wire.decode()) if wire else []
    for line in text + lines.flush():
        if (event := decoder.decode(line)) is not None:
            yield event


def read_events(wire: bytes) -> list[bytes]:
    """Return the data of each event."""
    return [event.data.encode() for event in decode_stream(wire)]
