"""The capture journal, through which the relay hands its copy of the traffic to the recorder.

`record_format` is the format, `journal` the relay's side, `journal_writer` its thread with `journal_files` and `loss`,
`journal_reader` the recorder's side, `file_layout` the paths.
"""
