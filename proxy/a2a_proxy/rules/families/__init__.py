"""The rules, one folder per family: `gen` contains A2A-GEN-*.

The docstring of a folder is the subject of the family; its `LEFT_OUT` lists the rule numbers that
are not implemented, each with the reason.
"""
