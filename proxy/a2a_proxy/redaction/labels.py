"""Labels: what stands where a secret stood."""

from __future__ import annotations

import hmac
import re
from typing import Final

from a2a_proxy.model.frame import Frame

WITHHELD: Final = "payload"
"""What `redacted` of a frame says where its payload was not recorded, on purpose."""
_PREFIX = b"redacted-"
_LABEL = re.compile(rb"redacted-[0-9a-f]{12}")


def label(key: bytes, secret: bytes | str) -> str:
    """The label of a secret: `redacted-` and 48 bits of an HMAC, so that it tells nothing without the key.

    Letters, digits and hyphens only: safe unquoted in JSON strings, header values, URLs, url-safe base64 and protobuf.
    """
    data = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
    return (_PREFIX + hmac.digest(key, data, "sha256")[:6].hex().encode()).decode()


def is_label(value: bytes) -> bool:
    """Whether the value is a label already, as in traffic replayed from a recording."""
    return value.startswith(_PREFIX) and _LABEL.fullmatch(value) is not None


def withheld(frame: Frame) -> bool:
    """Its payload was left out on purpose: nothing can be said of it."""
    return not frame.payload and WITHHELD in frame.redacted
