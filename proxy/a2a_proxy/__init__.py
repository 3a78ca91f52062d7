"""a2a-proxy: relays A2A traffic unchanged, decodes a copy of it, and keeps a recording."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_proxy.api import Recording

__version__ = "0.1.0"
__all__ = ["Recording", "__version__"]


def __getattr__(name: str) -> object:
    """Import `Recording`, with SQLite and the decoders, on first access, so that starting a proxy
    stays fast."""
    if name != "Recording":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from a2a_proxy.api import Recording

    return Recording
