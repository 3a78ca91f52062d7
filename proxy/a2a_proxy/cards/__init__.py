"""Signatures of agent cards (manual/signatures.md).

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

The verdict:
- `verify`: the signatures of a card, verified with the keys of the user

What it needs, from the extra `cards`:
- `forms`: the bytes that are signed, in each form that the specification and the SDKs use
- `keys`: the keys of a file: JWK set, JWK or PEM
"""
