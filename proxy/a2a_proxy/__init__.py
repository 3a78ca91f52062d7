"""a2a-proxy: relay A2A traffic untouched, decode the copy, keep the recording."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_proxy.api import Recording

__version__ = "0.1.0.dev0"
__all__ = ["Recording", "__version__"]


def __getattr__(name: str) -> object:
    """`Recording` is imported, with SQLite and the decoders, when it is asked for: who starts a proxy does not wait."""
    if name != "Recording":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from a2a_proxy.api import Recording

    return Recording
