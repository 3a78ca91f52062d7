"""HTTP as bytes: where messages and their parts begin and end. For the decoders, which read a copy,
and for the editors of the relay, which read the traffic itself.

Independent of A2A; performs no I/O.

- `h1`: HTTP/1.1
- `h2`: the frames of one direction of HTTP/2
- `h2_scan`: forwarding of frames, some of them changed
- `h2_flow`: flow control when one peer is sent other DATA than the other sent
- `hpack`: header blocks of HTTP/2
- `websocket`: the frames of one direction of a WebSocket
"""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The HTTP/2 connection preface (RFC 9113, 3.4)."""
