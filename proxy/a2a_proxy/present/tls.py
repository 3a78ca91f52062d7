"""TLS handshakes in words."""

from collections.abc import Iterator

from a2a_proxy.model.values import Connection, Exchange
from a2a_proxy.model.wire import CertificateFacts, TlsFacts
from a2a_proxy.rules.facts.hosts import host_of


def describe_tls(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield a name and a line for each leg of the connection that uses TLS."""
    if connection.tls is not None and connection.tls.client is not None:
        yield "client's TLS", _describe_handshake(connection.tls.client, "proxy's certificate")
    if connection.tls is not None and connection.tls.upstream is not None:
        yield "agent's TLS", _describe_handshake(connection.tls.upstream, "agent's certificate")


def describe_other_host(exchange: Exchange, connection: Connection) -> str:
    """Return a line if the call names another host than its client's TLS handshake, else an empty
    text."""
    asked = (
        connection.tls.client.server_name
        if connection.tls is not None and connection.tls.client is not None
        else ""
    )
    host = host_of(exchange.authority).rstrip(".")
    if not asked or not host or host == asked.rstrip("."):
        return ""
    return f"the call is for {host}, the TLS handshake for {asked}"


def _describe_handshake(facts: TlsFacts, server: str) -> str:
    parts = [
        ", ".join(word for word in (facts.version, facts.cipher, facts.alpn or "no ALPN") if word)
    ]
    parts.append(f"server name {facts.server_name}" if facts.server_name else "no server name")
    parts += [_describe_certificate(server, facts.server)] if facts.server is not None else []
    parts += (
        [_describe_certificate("client's certificate", facts.client)]
        if facts.client is not None
        else []
    )
    return "; ".join(parts)


def _describe_certificate(title: str, facts: CertificateFacts) -> str:
    words = [", ".join(facts.names) or "names unknown"]
    words += [f"until {facts.not_after[:10]}"] if facts.not_after else []
    if title != "proxy's certificate":
        words.append("verified" if facts.verified else "not verified")
    return f"{title}: {', '.join(words)}, SHA-256 {facts.sha256}"
