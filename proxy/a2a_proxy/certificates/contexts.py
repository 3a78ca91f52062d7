"""TLS contexts of servers for the names that clients ask for."""

from __future__ import annotations

import datetime
import ssl
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable

from a2a_proxy.certificates.authority import Authority, encode_server, make_key

MAX_CONTEXTS = 256
"""Contexts that are kept; clients choose the names."""
REISSUE_BEFORE = datetime.timedelta(days=30)
"""A certificate that ends sooner is replaced at the next use; with the authority's end in sight none lives longer."""

Clock = Callable[[], datetime.datetime]


def utc_now() -> datetime.datetime:
    """Return the current time."""
    return datetime.datetime.now(datetime.UTC)


class IssuedContexts:
    """The contexts with certificates of the authority, the least recently used are dropped. May be used by threads."""

    def __init__(
        self, authority: Authority, prepare: Callable[[ssl.SSLContext], None] = lambda _: None, clock: Clock = utc_now
    ) -> None:
        """Create no context yet. `prepare` is called once with each new one."""
        self._authority = authority
        self._prepare = prepare
        self._clock = clock
        self._key = make_key()
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, tuple[str, ...]], tuple[ssl.SSLContext, datetime.datetime]] = OrderedDict()

    def find_context(self, name: str, protocols: tuple[str, ...]) -> ssl.SSLContext | None:
        """Return the context for a name that prefers these ALPN protocols in this order, or None if there is none."""
        with self._lock:
            kept = self._kept.get((name, protocols))
            if kept is None or kept[1] < self._clock():
                return None
            self._kept.move_to_end((name, protocols))
            return kept[0]

    def make_context(self, name: str, protocols: tuple[str, ...]) -> ssl.SSLContext:
        """Return a context as `find_context`, created if there is none: this takes about a millisecond, and a file.

        Raises OSError or ssl.SSLError.
        """
        context = self.find_context(name, protocols)
        if context is not None:
            return context
        now = self._clock()
        certificate = self._authority.issue(name, self._key, now)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:  # Python loads certificates from files only; others cannot read it
            file.write(encode_server(self._key, certificate))
            file.flush()
            context.load_cert_chain(file.name)
        context.set_alpn_protocols(list(protocols))
        self._prepare(context)
        end = max(certificate.not_valid_after_utc - REISSUE_BEFORE, now + datetime.timedelta(days=1))
        with self._lock:
            self._kept[name, protocols] = context, end
            if len(self._kept) > MAX_CONTEXTS:
                self._kept.popitem(last=False)
        return context
