"""The recorder: a separate process that turns the journal into a recording, and its supervisor on
the relay's side.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Processes:
- `__main__`: entry point of the recorder process
- `process`: the loop: journal, observer, recording
- `recorder_supervisor`: the relay's side: starts and restarts the recorder

Input and output:
- `resume`: the starting state
- `pump`: feeds the journal into the observer
- `recording_output`: opens, writes and summarizes the recording
- `open_exchanges`: the choice of open exchanges for status lines
- `crashes`: positions at which earlier recorders died

The process:
- `status_writer`: writes status lines without waiting
- `status`: messages on the status pipe
- `priority`: priorities of the processes, and the processor time that the recorder leaves to the
  relay
- `process_supervisor`: restarts processes: the recorder, and processes of other packages
"""
