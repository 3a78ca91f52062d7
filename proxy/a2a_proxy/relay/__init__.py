"""The relay: what sits on the wire. It forwards bytes as they come and appends a copy to the journal.

`route` says from where to where, `splice` is one connection, `server` all of them. Imports little, so that it starts
fast.
"""
