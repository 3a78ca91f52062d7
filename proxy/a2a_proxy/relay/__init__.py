"""The relay: forwards bytes between client and agent as received and appends a copy of them to the journal.

`route` describes listeners and upstreams, `connection` is one relayed connection, `server` manages all of them. Imports
little, so that it starts fast.
"""
