"""Credentials out, labels in: the floor between `protocol` and everything that stores, shows or logs.

`Redactor` takes the values that `protocol` made and gives back values without credentials. The same secret
always becomes the same label, so readers can still compare. Nothing here does I/O or
raises on bad input.
"""

from a2a_proxy.redaction.labels import label
from a2a_proxy.redaction.metadata_only import BareRedactor
from a2a_proxy.redaction.policy import RedactionPolicy
from a2a_proxy.redaction.redactor import Redactor

__all__ = ["RedactionPolicy", "Redactor", "label", "redactor"]


def redactor(key: bytes, policy: RedactionPolicy) -> Redactor:
    """The redactor that does what a policy says."""
    return (BareRedactor if policy.metadata_only else Redactor)(key, policy)
