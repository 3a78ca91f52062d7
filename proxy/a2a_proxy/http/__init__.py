"""HTTP as bytes: where messages and their parts begin and end. For the decoders, which read a copy,
and for the editors of the relay, which read the traffic itself.

Independent of A2A; performs no I/O.

- `h1`: HTTP/1.1
"""
