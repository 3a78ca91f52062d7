"""Serving of a script: JSON-RPC, REST, gRPC, WebSockets on one port, stdio, agent card, webhooks.

mock         the servers, started and stopped together
performance  one player with a clock: when each send goes out, and the reports
incoming     requests of clients, in the form that the player takes
outgoing     messages of the player, in the form of each binding
"""
