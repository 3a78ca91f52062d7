"""Followers of a recording: processes that pass its new rows to a consumer, such as a hook or an
exporter.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Processes:
- `__main__`: entry point of the process that calls a hook
- `metrics`: the process behind `--metrics` (package)
- `entry`: the entry of a follower process, for any consumer
- `process`: the loop of a follower
- `supervisor`: starts and restarts a follower process

Reading and consuming:
- `batch_reader`: reads the rows after a cursor, in delivery order
- `hook_consumer`: a hook as a consumer
- `consumer`: the interface of consumers

State:
- `checkpoint`: the position, which survives the process
- `status`: messages to the program that started the follower
- `hook_log`: the log file of a hook
- `lag`: count of the frames not yet handled
- `task_counts`: count of the tasks by state
- `histogram_buckets`: bucket limits of time histograms
"""
