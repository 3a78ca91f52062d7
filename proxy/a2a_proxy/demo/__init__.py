"""A built-in agent and client that use A2A 1.0 on three bindings: traffic to inspect without an
agent of one's own.

`story` holds the agent's answers, `agent` serves them, `client` sends the requests.
"""
