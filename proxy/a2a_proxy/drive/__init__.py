"""Driving: sends the client side of a recording to a live agent again, each message when its
dependencies are met.

The comparison of the two recordings is in `recording.difference`.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

The drive:
- `run`: repeats every recorded call; never hangs
- `stdio`: calls to a stdio agent
- `grpc`: calls over gRPC
- `http`: calls over HTTP/1.1

Calls and messages:
- `edit`: the decoded request of a call, for an edit, and the call with the edited one
- `route`: addresses of the calls
- `request`: the request to send for a recorded message, and further messages of a live call

The plan:
- `load`: building of a plan from a recording
- `plan`: messages, and the events that each message waits for
- `ids`: map from recorded identifiers to the drive's
- `compare_policy`: the choice of the differences that count
"""
