"""Conversion of canonical 1.0 JSON into any dialect's JSON and protobuf: the inverse of
`protocol.canonical`.

The result, read again by `protocol.event.normalise_event`, equals the input; the tests check this
property.
"""
