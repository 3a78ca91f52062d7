"""Decode wire events into A2A: operations, dialects, bindings, the event model, artifacts and tasks.

`conversation` is the entry point (one per connection), `session_facts` holds the state that connections share, and
`task` joins the frames of several connections. `event`, `artifact` and `describe` read recorded frames lazily, outside
the hot path.
"""
