"""The capture journal, through which the relay passes its copy of the traffic to the recorder.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

The relay's side:
- `journal`: takes records without ever waiting
- `journal_files`: creates, writes and rotates the files

Readers of a running session:
- `backlog`: how far a recording is behind

The recorder's side:
- `journal_reader`: reads records from a position on

Common:
- `loss`: accounting of records that could not be written
- `record_format`: the format of records and file headers
- `file_layout`: paths of state directory, journals, recordings and key
- `recorder_options`: options of the command line that reach the recorder
"""
