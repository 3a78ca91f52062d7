"""Credentials out, labels in: the floor between `protocol` and everything that stores, shows or logs.

`Redactor` takes the values that `protocol` made and gives back values without credentials (design 8). The same secret
always becomes the same label, so readers can still compare. Nothing here does I/O or
raises on bad input.
"""

from a2a_proxy.redaction.labels import label
from a2a_proxy.redaction.redactor import Redactor

__all__ = ["Redactor", "label"]
