"""All known extensions: those of plug-ins, whose packages are read when one is first needed, then
the built-in ones."""

from collections.abc import Callable, Iterable

from a2a_proxy.protocol.extensions.a2ui import A2UI
from a2a_proxy.protocol.extensions.ap2 import AP2
from a2a_proxy.protocol.extensions.extension import Extension
from a2a_proxy.protocol.extensions.short_extensions import (
    LATENCY,
    SECURE_PASSPORT,
    TIMESTAMP,
    TRACEABILITY,
)

BUILT_IN = (A2UI, AP2, LATENCY, SECURE_PASSPORT, TIMESTAMP, TRACEABILITY)
Source = Callable[[], Iterable[Extension]]


class Registry:
    """The known extensions of a process."""

    def __init__(self) -> None:
        self._source: Source | None = None
        self._known: tuple[Extension, ...] | None = None

    def use_source(self, source: Source | None) -> None:
        """Set the function that returns the extensions of plug-ins; it is called once, when one is
        first needed."""
        self._source, self._known = source, None

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """All extensions; a plug-in comes before the built-in ones, so that it can take the place
        of one."""
        if self._known is None:
            self._known = (*(self._source() if self._source else ()), *BUILT_IN)
        return self._known

    def find_uri(self, uri: str) -> Extension | None:
        """Return the extension with this URI, or None."""
        return next((each for each in self.extensions if uri.startswith(each.uris)), None)


REGISTRY = Registry()
"""The registry that descriptions use."""


def name_uris(uris: str) -> str:
    """Return a list of URIs, as in the header `A2A-Extensions`, with the names of the known
    ones."""
    named = []
    for uri in (each.strip() for each in uris.split(",")):
        extension = REGISTRY.find_uri(uri)
        named.append(f"{uri} ({extension.name})" if extension else uri)
    return ", ".join(named)
