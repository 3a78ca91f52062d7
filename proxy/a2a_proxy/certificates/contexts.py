"""TLS contexts of servers for the names that clients ask for."""

import datetime
import ssl
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from a2a_proxy.certificates.authority import Authority, encode_server, make_key
from a2a_proxy.model.wire import CertificateFacts
from a2a_proxy.relay.client_tls import LISTENER_PROTOCOLS, ServerContext, create_server_context
from a2a_proxy.relay.tls import MAX_NAMES, CertificateFiles, format_time, load_certificate

MAX_CONTEXTS = 256
"""Contexts that are kept; clients choose the names."""
REISSUE_BEFORE = datetime.timedelta(days=30)
"""A certificate that ends sooner is replaced at the next use; with the authority's end in sight
none lives longer."""

Clock = Callable[[], datetime.datetime]


def utc_now() -> datetime.datetime:
    """Return the current time."""
    return datetime.datetime.now(datetime.UTC)


class IssuedContexts:
    """The contexts with certificates of the authority, the least recently used are dropped. May be
    used by threads."""

    def __init__(
        self,
        authority: Authority,
        prepare: Callable[[ssl.SSLContext], None] = lambda _: None,
        clock: Clock = utc_now,
    ) -> None:
        """Create no context yet. `prepare` is called once with each new one."""
        self._authority = authority
        self._prepare = prepare
        self._clock = clock
        self._key = make_key()
        self._lock = threading.Lock()
        self._kept: OrderedDict[
            tuple[str, tuple[str, ...]], tuple[ServerContext, datetime.datetime]
        ] = OrderedDict()

    def find_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext | None:
        """Return the context for a name that prefers these ALPN protocols in this order, or None if
        there is none."""
        with self._lock:
            kept = self._kept.get((name, protocols))
            if kept is None or kept[1] < self._clock():
                return None
            self._kept.move_to_end((name, protocols))
            return kept[0]

    def make_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext:
        """Return a context as `find_context`, created if there is none: this takes about a
        millisecond, and a file.

        Raises OSError.
        """
        known = self.find_context(name, protocols)
        if known is not None:
            return known
        now = self._clock()
        certificate = self._authority.issue(name, self._key, now)
        context = create_server_context(protocols)
        with (
            tempfile.NamedTemporaryFile() as file
        ):  # Python loads certificates from files only; others cannot read it
            file.write(encode_server(self._key, certificate))
            file.flush()
            context.load_cert_chain(file.name)
        self._prepare(context)
        end = max(
            certificate.not_valid_after_utc - REISSUE_BEFORE, now + datetime.timedelta(days=1)
        )
        made = ServerContext(context, describe_certificate(certificate))
        with self._lock:
            self._kept[name, protocols] = made, end
            if len(self._kept) > MAX_CONTEXTS:
                self._kept.popitem(last=False)
        return made


class FileContexts:
    """The contexts with the user's own certificate, whatever name a client asks for."""

    def __init__(
        self, files: CertificateFiles, prepare: Callable[[ssl.SSLContext], None] = lambda _: None
    ) -> None:
        """Read the files. `prepare` is called once with each context. Raises RouteError."""
        self._files = files
        self._prepare = prepare
        self._kept: dict[tuple[str, ...], ServerContext] = {}
        self.make_context("", LISTENER_PROTOCOLS)

    def find_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext | None:  # noqa: ARG002 - one for all
        """Return the context that prefers these ALPN protocols in this order, or None if there is
        none."""
        return self._kept.get(protocols)

    def make_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext:  # noqa: ARG002 - one for all
        """Return a context as `find_context`, created if there is none. Raises RouteError."""
        context = create_server_context(protocols)
        load_certificate(context, self._files)
        self._prepare(context)
        certificate = x509.load_pem_x509_certificate(self._files.certificate.read_bytes())
        return self._kept.setdefault(
            protocols, ServerContext(context, describe_certificate(certificate))
        )


def describe_certificate(certificate: x509.Certificate) -> CertificateFacts:
    """Return the facts of a certificate of the proxy."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    return CertificateFacts(
        certificate.fingerprint(hashes.SHA256()).hex(),
        tuple(str(name.value) for name in list(names)[:MAX_NAMES]),
        format_time(certificate.not_valid_after_utc.timestamp()),
    )
