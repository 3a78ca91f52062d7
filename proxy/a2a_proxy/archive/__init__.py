"""The archive: what recordings hold as Parquet in object storage or a folder, for more than one machine.

`schema` the two tables, `rows` and `facts` their rows, `bloom` and `manifest` what says where something lies, `place`
the storage, `segment` and `keep` the way in, `find` and `bring` the way out. Needs the extra `lake`, which is imported
where it is used.
"""
