"""gRPC framing and status."""

LEFT_OUT: dict[str, str] = {
    "A2A-GRPC-015": "the limit is the receiver's; a call over it fails with RESOURCE_EXHAUSTED",
}
