"""Strict decoders: they read payloads that are provably valid, as most are."""
