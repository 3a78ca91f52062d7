"""Signatures of agent cards (manual/signatures.md).

- `forms`: the bytes that are signed, in each form that specification and SDKs use
- `keys`: the keys of a file: JWK set, JWK or PEM
- `verify`: the signatures of a card, verified with those keys
"""
