"""The filter language: one grammar for `ls`, `show`, `check`, the screen and Python.

`parser` makes a tree of a text, `tree` writes it again, `sql` makes SQL of it with every value bound, `run` asks a
recording. `fields` is the table of what can be asked for. Nothing that a user typed ever becomes SQL text.
"""
