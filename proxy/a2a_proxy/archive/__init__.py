"""Archive of recordings as Parquet files in object storage or in a folder, shared by several
machines.

Needs the extra `lake`, whose packages are imported only on use.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Processes and operations:
- `__main__`: the process that archives a live session
- `upload`: upload of finished sessions
- `restore`: restoring a task, a context, a trace or a time range as a recording

Segments:
- `segment`: one segment: the choice of its rows, its two tables, their upload
- `search`: search for segments by their content
- `files`: encoding and reading of Parquet files
- `manifest`: manifests, which describe and index segments

Rows and storage:
- `rows`: rows of the table `frames`
- `schema`: the Parquet schemas of both tables
- `store`: access to object storage or a folder
- `destination`: the destination of an archived session
- `errors`: errors of an archive
"""
