"""Call an agent by grpcio: `grpcio_client.py HOST:PORT`; see `http_client.py`.

grpcio does not give the certificate to its caller, and refuses a server that does not agree on
`h2`.
"""

from __future__ import annotations

import sys

import grpc

with grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials()) as channel:
    try:
        channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")(b"", timeout=60)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            sys.exit(error.details())
        print("status: 200\nprotocol: h2")
