"""Import of files that other programs wrote: each becomes the records of a journal, which the observer decodes.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below it.

- `recording_writer`: the records to a recording

- `har_file`: a HAR file as records, in order of time

- `har_call`: one entry of a HAR file

- `http_writer`: the bytes of HTTP/1.1 and HTTP/2 messages
"""
