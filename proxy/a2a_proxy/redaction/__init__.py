"""Redaction: replaces credentials in the values of `protocol` by labels before any value is stored,
shown or logged.

The same secret always gets the same label, so readers can still compare values. This package
performs no I/O, and bad input never raises an exception.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Redactors:
- `redactor`: redacts the values of one session
- `metadata_only`: a redactor that drops every payload
- `scanner`: a redactor that reports secrets instead

Payloads:
- `split_secrets`: secrets that arrive in pieces
- `payload`: redaction of a payload by its schema
- `protobuf_hiding`: values of protobuf at the places of a policy
- `json_hiding`: values of JSON at the places of a policy

Scrubbers, walks, policies:
- `policy_scrubber`: the scrubber of a policy
- `scrubber`: replacement of secrets by labels
- `protobuf_walk`: walk of protobuf bytes
- `json_walk`: walk of JSON bytes
- `json_position`: the current position in a JSON text
- `replaced_places`: paths of the replaced values, limited in size
- `policy`: redaction policies and their words
- `payload_paths`: paths into payloads

Detection and labels:
- `scope`: the names around a value
- `secret_patterns`: secrets in free text
- `known_secrets`: secrets found in a known place
- `key_formats`: forms of keys
- `secret_names`: names that hold secrets
- `entropy`: random words
- `personal_data`: personal data, for the preset `pii`
- `page`: the section of the manual on names and forms
- `labels`: labels, which replace secrets
"""

from a2a_proxy.redaction.labels import make_label
from a2a_proxy.redaction.metadata_only import MetadataRedactor
from a2a_proxy.redaction.policy import RedactionPolicy
from a2a_proxy.redaction.redactor import Redactor, RedactorState

__all__ = ["RedactionPolicy", "Redactor", "RedactorState", "create_redactor", "make_label"]


def create_redactor(key: bytes, policy: RedactionPolicy) -> Redactor:
    """Return the redactor for a policy."""
    return (MetadataRedactor if policy.metadata_only else Redactor)(key, policy)
