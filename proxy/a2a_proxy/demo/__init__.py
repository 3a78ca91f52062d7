"""A built-in agent and client that talk A2A 1.0 on three bindings: something to look at without an agent of one's own.

`story` is what the agent says, `agent` serves it, `client` asks.
"""
