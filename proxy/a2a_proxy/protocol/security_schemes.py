"""The two forms of a security scheme in an agent card: an object with `type` in JSON before 1.0,
and an object with one wrapper member in 1.0 and in protobuf (manual/protocol.md "Agent cards").
"""

SCHEME_TYPES = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""The `type` of each wrapper member."""
SCHEME_WRAPPERS = {kind: wrapper for wrapper, kind in SCHEME_TYPES.items()}
"""The wrapper member of each `type`."""
