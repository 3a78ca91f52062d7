"""The rules, a folder a family: `gen` has A2A-GEN-*.

A folder's docstring is the family's subject; its `LEFT_OUT` says which numbers of the protocol sheet it does not have,
and why.
"""
