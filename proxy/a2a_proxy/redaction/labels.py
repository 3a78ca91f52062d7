"""Labels, which replace secrets."""

import hmac
import re
from typing import Final

from a2a_proxy.model.values import Frame

WITHHELD: Final = "payload"
"""Entry in `redacted` of a frame whose payload was intentionally not recorded."""
_PREFIX = b"redacted-"
_LABEL = re.compile(rb"redacted-[0-9a-f]{12}")


def make_label(key: bytes, secret: bytes | str) -> str:
    """Return the label of a secret: `redacted-` and 48 bits of an HMAC, which reveal nothing
    without the key.

    Letters, digits and hyphens only: safe unquoted in JSON strings, header values, URLs, url-safe
    base64 and protobuf.
    """
    data = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
    return (_PREFIX + hmac.digest(key, data, "sha256")[:6].hex().encode()).decode()


def is_label(value: bytes) -> bool:
    """Whether the value is already a label, as in traffic replayed from a recording."""
    return value.startswith(_PREFIX) and _LABEL.fullmatch(value) is not None


def is_withheld(frame: Frame) -> bool:
    """Whether the payload was intentionally not recorded, so that nothing is known about it."""
    return not frame.payload and WITHHELD in frame.redacted
