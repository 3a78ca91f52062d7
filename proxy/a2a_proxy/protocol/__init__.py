"""Decoding of wire events into A2A: operations, dialects, bindings, the event model, artifacts and
tasks.

`event`, `artifact` and `describe` read recorded frames lazily, outside the hot path.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Entry points:
- `conversation`: decodes one connection: wire events in, frames and findings out
- `segments`: conversations as turns, interruptions and hand-offs (package)
- `canonical_form`: the form in which messages are compared, matched and replayed
- `decoded`: a payload as JSON values
- `describe`: one-line descriptions of frames
- `extensions`: known extensions and their content in words (package)

Bindings, events, tasks:
- `bindings`: one decoder per binding (package)
- `task`: tasks joined over connections, bindings, streams and pushes
- `event`: payloads as canonical JSON and typed events
- `request`: requests in canonical JSON
- `canonical`: objects of any dialect in canonical JSON
- `task_list`: tasks in the response to ListTasks
- `artifact`: artifacts assembled from their chunks
- `generation`: generations of one task, and why numbers are missing
- `client_messages`: client messages that may have a missing generation
- `timeline`: the timeline of a Task
- `generation_ranges`: sets of generations

Calls and payloads:
- `call`: one stream as one exchange, common to all bindings
- `dialect`: the dialect of a call
- `live`: the payload of a SendLiveMessage stream
- `message`: what is read of a payload for all its users
- `strict`: decoders of provably valid payloads (package)
- `status_summary`: the status of a payload, and the payload as it was read
- `artifact_chunks`: sizes and hashes of artifacts in frames
- `text_place`: where the text of a chunk is in its JSON
- `schema`: the protobuf class of a payload
- `json_summary`: summaries of JSON
- `proto_summary`: summaries of protobuf messages
- `summary`: ids, state and flags for the index of a recording
- `errors`: error names and payloads

Tables and state:
- `session_facts`: facts that the connections of a session share
- `exchange`: one open exchange, and the table of its life
- `stream_life`: the life of a call on a pipe
- `outcome`: outcome of an exchange
- `completeness`: whether a capture is complete, and the places that are not decoded
- `finding_totals`: number of findings, repetitions included
- `rest_path`: map from REST paths to operations
- `operations`: the operation table
- `security_schemes`: the forms of a security scheme in a card
- `json_shapes`: typed, partial JSON
- `stdio_command`: the command of a stdio agent in a card
- `trace_context`: the `traceparent` header
- `text`: peers' text made safe for terminals and JSON
"""
