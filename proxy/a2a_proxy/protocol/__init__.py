"""Wire events in, A2A out: operations, dialects, bindings, the event model, artifacts and tasks.

`conversation` is the way in (one per connection), `shared` what connections have in common, `task` joins frames over
connections. `event`, `artifact` and `describe` read recorded frames lazily, outside the hot path.
"""
