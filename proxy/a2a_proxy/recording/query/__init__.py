"""The filter language: one grammar for `ls`, `show`, `check`, the screen and Python.

`parser` builds a tree from a text, `tree` formats it as text again, `sql` translates it to SQL with
every value bound, `run` queries a recording. `fields` is the table of all fields. No user input
ever becomes SQL text.
"""
