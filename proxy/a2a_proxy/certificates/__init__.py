"""The authority that certifies the proxy's TLS listeners, and the certificates that it issues.

Imported only for `--tls`, interception and the commands of `a2a-proxy ca`: it needs the extra
`tls`.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

- `contexts`: TLS contexts for the names that clients ask for
- `trust`: the variables with which programs trust the authority
- `store`: the authority's files
- `authority`: creates the authority and issues certificates
"""
