"""The vocabulary: every value passed between the layers of the proxy, without behaviour.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Stored values, the output of the observer:
- `values`: connections, exchanges, frames, findings, notes, tasks, segments

Wire and input:
- `wire`: events of the wire decoders

Modules without imports from this package:
- `fields`: the field table: how each field is stored, shown and redacted
- `event`: the A2A event model
- `option`: how options of the command line are declared
- `errors`: the error that the user can fix
- `card_signature`: signatures of agent cards, with verdicts
- `name_json`: JSON of values that hold file names
- `saved_state`: the state that outlives the recorder's process
- `eviction`: the oldest entries of a bounded dictionary
- `transitions`: state machines as tables
"""
