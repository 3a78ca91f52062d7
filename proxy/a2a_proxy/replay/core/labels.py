"""Redaction labels in place of credentials: which of them a replay can fill in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.wire import Headers
from a2a_proxy.replay.core.script import RecordedCall, ScriptSide

LABEL = re.compile(r"redacted-[0-9a-f]{12}")
_LABEL_BYTES = re.compile(LABEL.pattern.encode())


def find_unfilled(calls: Iterable[RecordedCall]) -> Iterator[tuple[RecordedCall, str]]:
    """Yield the calls, in their order, each with a label of its answer that no client sent before,
    so that its value is unknown; empty if there is none."""
    known_labels: set[str] = set()
    for call in calls:
        known_labels |= find_labels(call.request)
        unknown = ""
        for line in call.lines:
            labels = find_labels(line.value)
            if line.side is ScriptSide.CLIENT:
                known_labels |= labels
            else:
                unknown = unknown or min(labels - known_labels, default="")
        yield call, unknown


def find_labels(value: Any) -> set[str]:
    """Return the labels anywhere in a message."""
    return set(LABEL.findall(msgspec.json.encode(value).decode())) if value else set()


def without_labels(headers: Headers) -> Headers:
    """Return the header fields without those that would deliver a label to a client, for example as
    a cookie."""
    return tuple((name, value) for name, value in headers if not _LABEL_BYTES.search(value))
