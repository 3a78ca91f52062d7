"""Endings: why a call or a task did not end well, from what a recording holds.

Facts in, endings out. An ending is computed when it is read and never stored, so later traffic
explains earlier calls.

- `ending`: the value, and the decorator that registers a cause
- `call_facts`: what is known of one call, and of all calls of its session
- `evaluate`: the endings of a session

The causes are the rules of the family END (`rules.families.end`).
"""
