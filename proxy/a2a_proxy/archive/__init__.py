"""Archive of recordings as Parquet files in object storage or in a folder, shared by several machines.

`schema` describes the two tables; `rows` and `facts` convert between recordings and their rows; `bloom` and `manifest`
index the files; `store` accesses the storage. `segment` and `upload` write; `search` and `restore` read. Needs the
extra `lake`, which is imported only where it is used.
"""
