"""Authentication and transport security."""

LEFT_OUT: dict[str, str] = {
    "A2A-AUTH-009": "the bytes of a TLS handshake with an upstream are not in the recording, and a client's own TLS "
    "passes unread: which version was agreed on cannot be told from what is recorded",
}
