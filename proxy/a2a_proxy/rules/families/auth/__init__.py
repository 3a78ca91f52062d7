"""Authentication and transport security."""

LEFT_OUT: dict[str, str] = {
    "A2A-AUTH-009": "a recording does not contain the TLS handshake with an upstream, "
    "and a client's own TLS "
    "is "
    "relayed without decryption, so the negotiated TLS version is unknown",
}
