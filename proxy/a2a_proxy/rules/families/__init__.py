"""The rules, a folder a family: `gen` has A2A-GEN-*.

A folder's docstring is the family's subject; its `LEFT_OUT` says which rule numbers it does not have,
and why.
"""
