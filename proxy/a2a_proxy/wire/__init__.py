"""Decoding of bytes into wire events: HTTP/1.1, HTTP/2, gRPC, server-sent events, WebSocket, stdio.

Independent of A2A; performs no I/O.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Connections:
- `connection`: detects the protocol and passes bytes to its decoder
- `stdio`: two directions of a pipe
- `http1`: one HTTP/1.1 connection
- `http2`: one HTTP/2 connection
- `websocket`: one WebSocket after its handshake
- `detect`: a connection's protocol from its first bytes

One direction:
- `stdio_reader`: one direction of a pipe
- `http2_side`: one direction of an HTTP/2 connection
- `grpc`: length-prefixed messages of one direction of a stream
- `sse`: server-sent events
- `content`: content codings
- `deflated_messages`: compressed messages of a WebSocket
- `http1_body`: HTTP/1.1 bodies

Elements:
- `http1_head`: HTTP/1.1 heads
- `client_hello`: server name and protocols of a TLS client
- `stray`: stray lines between messages
- `lines`: lines of text outside messages
- `stdio_head`: header blocks of messages on a pipe
- `json_extent`: the end of a JSON object or array
- `json_sequence`: JSON in place of server-sent events
- `body`: a message body from its pieces
"""
