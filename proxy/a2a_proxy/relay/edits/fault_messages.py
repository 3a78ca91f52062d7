"""The messages of gRPC responses that faults look for: their facts, and another generation in their
bytes."""

from typing import Any

from google.protobuf.message import DecodeError

from a2a_proxy.faults.plan import EventFacts
from a2a_proxy.protocol.operations import GRPC_METHODS, message_names
from a2a_proxy.protocol.schema import MessageDecoder, decoder_for, schema_of, schema_set_of
from a2a_proxy.relay.edits.fault_events import NO_FACTS, facts_of
from a2a_proxy.wire.content import ContentDecoder

MAX_READ_BYTES = 1 << 20
"""Bytes of the longest message whose facts are read: decoding it takes at most 30 ms without
interruption."""
PREFIX_SIZE = 5
"""Bytes of the prefix of a message."""
_SLICE_BYTES = 1024
"""Compressed bytes that are decompressed before the size of the message is checked."""
_MAX_GENERATION = (1 << 63) - 1


class GrpcEvents:
    """Reads the messages of an agent in one call. `path` is that of the call, `encoding` that of
    its response."""

    def __init__(self, path: str, encoding: bytes) -> None:
        self._operation, self._dialect = GRPC_METHODS[path]
        self._encoding = encoding
        self._decoder: MessageDecoder | None = None

    def read(self, message: bytes) -> EventFacts:
        """Return the facts of a message with its prefix."""
        parsed = self._parse(message)
        return NO_FACTS if parsed is None else facts_of(self._choose_decoder().summarise(parsed))

    def change_generation(self, message: bytes, change: int) -> bytes | None:
        """Return the message, uncompressed and with its generation changed by a number, or None if
        it has none."""
        parsed = self._parse(message)
        if parsed is None:
            return None
        which = (
            parsed.WhichOneof("payload")
            if parsed.DESCRIPTOR.oneofs_by_name.get("payload")
            else None
        )
        holder = getattr(parsed, which) if which else parsed
        if "generation" not in holder.DESCRIPTOR.fields_by_name or not holder.generation:
            return None
        holder.generation = min(max(holder.generation + change, 0), _MAX_GENERATION)
        payload: bytes = parsed.SerializeToString()
        return b"\0" + len(payload).to_bytes(4) + payload

    def _parse(self, message: bytes) -> Any:
        data = message[PREFIX_SIZE:]
        try:
            if message[0] and len(data) <= MAX_READ_BYTES:
                data = _decompress(self._encoding, data)
            return self._choose_decoder().parse(data) if len(data) <= MAX_READ_BYTES else None
        except (DecodeError, ValueError):
            return None

    def _choose_decoder(self) -> MessageDecoder:
        if self._decoder is None:
            name = message_names(self._operation, self._dialect)[1]
            self._decoder = decoder_for(schema_of(schema_set_of(self._dialect), name))
        return self._decoder


def _decompress(encoding: bytes, data: bytes) -> bytes:
    """Return the payload of a compressed message, or more than MAX_READ_BYTES of it."""
    decoder, payload = ContentDecoder(encoding), bytearray()
    for start in range(0, len(data), _SLICE_BYTES):
        payload += decoder.feed(data[start : start + _SLICE_BYTES])
        if len(payload) > MAX_READ_BYTES:
            break
    return bytes(payload)
