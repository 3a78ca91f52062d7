"""Archive of recordings as Parquet files in object storage or in a folder, shared by several machines.

`schema` describes the two tables; `rows` and `facts` convert between recordings and their rows; `files` writes and
reads Parquet; `manifest` describes and indexes a segment; `store` accesses the storage, which `destination` names.
`segment`, `upload` and `live_upload` write; `search`, `restore` and `rebuild` read. Needs the extra `lake`, which is
imported only where it is used.
"""
