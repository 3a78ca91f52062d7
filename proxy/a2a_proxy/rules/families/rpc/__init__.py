"""JSON-RPC envelope."""
