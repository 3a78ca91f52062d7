"""Faults on purpose, in recordings that are replayed and in live traffic (manual/live-faults.md).
No I/O, no clock.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

One response:
- `stream`: what faults do to the events of a response

One run:
- `plan`: which calls and events the faults concern, and how often each fault has happened

Words:
- `live`: faults on live traffic, which describe an event or a call
- `words`: the grammar that all faults share, with carets under what is wrong
"""
