"""Playback of a recording as a mock agent.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

From recording to server:
- `serve`: HTTP, gRPC, stdio, agent card and webhooks (package)
- `load`: building of a script from a recording

Logic without I/O:
- `core`: the decision of what is sent, and when (package)
- `convert`: canonical JSON into any dialect (package)
"""
