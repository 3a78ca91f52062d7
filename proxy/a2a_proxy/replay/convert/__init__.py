"""Canonical 1.0 JSON into any dialect's JSON and protobuf: the inverse of `protocol.canonical`.

What comes out, read again by `protocol.event.normalise`, is what went in; that is the property its tests hold.
"""
