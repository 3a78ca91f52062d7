"""A script on the wire: JSON-RPC, REST and gRPC on one port, stdio, agent card and webhooks.

Mock      the servers, started and stopped together
Stage     one player with a clock: which send goes out when, and who is told of it
incoming  what came, as the player wants to be asked
outgoing  what the player sends, as each binding says it
"""
