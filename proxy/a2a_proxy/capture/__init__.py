"""The capture journal: how the relay hands its copy of the traffic to the recorder.

`journal` is the format, `append` the relay's side, `tail` the recorder's side, `places` where it all lies.
"""
