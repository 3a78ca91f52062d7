"""The relay: forwards bytes between client and agent as received and appends a copy of them to the
journal.

Imports little, so that it starts fast.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Relays:
- `server`: all connections of one relay
- `stdio`: the stdio relay
- `run`: runs a coroutine on the fastest event loop

One connection:
- `tunnel`: a client of the forward proxy that sends CONNECT
- `forward`: a client of the forward proxy, with one connection after another
- `webhooks`: webhooks that lead through the proxy, and the deliveries to them (package)
- `client_tls`: the TLS handshake with a client
- `tls_transport`: one TLS connection, each direction of which ends by itself
- `connection`: client leg and agent leg
- `connection_editing`: the editing of one connection
- `fault_editing`: makes the editor of a connection with faults on purpose
- `refusal`: the response to a client without an upstream
- `refusal_responder`: the interface of that response
- `early_upstream`: an upstream connection that is established before the client's leg
- `dial`: connects to an upstream
- `upstream_proxy`: another proxy through which upstreams are dialled
- `stdio_agent`: the process of a stdio agent
- `stdio_pump`: one pipe of a stdio agent

State of a listener:
- `listener_state`: upstreams, learned routes, card-rewriting policy
- `edits`: the editors, which change bytes (package)
- `held_bytes`: the number of bytes that all editors hold
- `journal_buffer`: journal records of several threads
- `file_limit`: the limit of open files

Addresses and sockets:
- `bind`: creates listening sockets
- `first_bytes`: the first bytes of an accepted connection, without taking them
- `tcp`: socket operations that asyncio does not offer
- `tls`: TLS toward upstreams, and the files and facts of certificates
- `hosts`: names and addresses of an upstream's machine, and those on which this process listens
- `host_patterns`: patterns that name hosts in options
- `route`: addresses from the user's options
- `problem`: a response of the proxy itself
- `clock`: the only source of timestamps
"""
