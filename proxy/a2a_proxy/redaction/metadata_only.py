"""Recording without payloads: sizes, kinds, states, ids and times of the traffic, but none of its
content.

Payloads and error texts are dropped before any higher layer receives them, so no rule, console line
or export can repeat them. `labels.is_withheld` recognizes a frame whose payload was dropped.
"""

import re
from typing import Any, Final

import msgspec

from a2a_proxy.model.values import Exchange, Finding, Frame, FrameKind, Task
from a2a_proxy.model.wire import Headers
from a2a_proxy.redaction.labels import WITHHELD, is_label
from a2a_proxy.redaction.policy_scrubber import PROTOCOL_HEADERS
from a2a_proxy.redaction.redactor import Heads, Redactor
from a2a_proxy.redaction.scrubber import plain_name

_RULE: Final = "A2A-"
_NAMES: Final = re.compile(r"(?:data|event|content-length|content-type)\Z", re.I)
"""Names of the lines around a payload that reveal none of its content."""
_SIDES: Final = (
    ("request_headers", "header"),
    ("response_headers", "response-header"),
    ("trailers", "trailer"),
)


class MetadataRedactor(Redactor):
    """A redactor that drops every payload."""

    def redact_frame(
        self, frame: Frame, exchange: Heads | None, *facts: Any, **named: Any
    ) -> Frame:
        """Return the frame without its payload; its metadata stays, with secrets replaced."""
        return withhold_payload(super().redact_frame(frame, exchange, *facts, **named))

    def redact_exchange(self, exchange: Exchange) -> Exchange:
        """Return the exchange with labels for all header values except the protocol's, without
        error text and query."""
        clean = super().redact_exchange(exchange)
        changes: dict[str, Any] = {}
        paths: list[str] = []
        for side, word in _SIDES:
            raw: Headers = getattr(clean, side)
            bare = tuple((name, self._hide_header_value(name, value)) for name, value in raw)
            if bare != raw:
                changes[side] = bare
                paths += [
                    f"{word}:{name.decode('latin-1').lower()}"
                    for (name, old), (_, new) in zip(raw, bare, strict=True)
                    if old != new
                ]
        if clean.error:
            changes["error"] = ""
            paths.append("error")
        if "?" in clean.target:
            changes["target"] = clean.target.partition("?")[0]
            paths.append("target")
        if not changes:
            return clean
        return msgspec.structs.replace(
            clean, **changes, redacted=tuple(dict.fromkeys((*clean.redacted, *paths)))
        )

    def redact_task(self, task: Task) -> Task:
        """Return the task without the names of its artifacts, which agents choose freely."""
        clean = super().redact_task(task)
        if not any(artifact.name for artifact in clean.artifacts):
            return clean
        unnamed = tuple(msgspec.structs.replace(artifact, name="") for artifact in clean.artifacts)
        return msgspec.structs.replace(clean, artifacts=unnamed)

    def redact_finding(self, finding: Finding) -> Finding:
        """Return the finding; without details, which may repeat content, if it does not come from a
        rule."""
        clean = super().redact_finding(finding)
        if clean.rule.startswith(_RULE):
            return clean
        return msgspec.structs.replace(clean, summary=clean.summary.partition(":")[0], evidence={})

    def _hide_header_value(self, name: bytes, value: bytes) -> bytes:
        if (
            PROTOCOL_HEADERS.fullmatch(plain_name(name))
            or name.startswith(b":")
            or is_label(value)
            or not value
        ):
            return value
        return self.make_label(value)


def withhold_payload(frame: Frame) -> Frame:
    """Return the frame without its payload and all that may repeat it; the same object if it has
    none."""
    if not frame.size and not frame.payload:
        return frame
    # The note on undecodable bytes contains a sample of them.
    note = "" if frame.kind is FrameKind.UNDECODABLE else frame.note
    return msgspec.structs.replace(
        frame,
        payload=b"",
        sha256=b"",
        framing=_hide_framing_values(frame.framing),
        note=note,
        redacted=(*frame.redacted, WITHHELD),
    )


def _hide_framing_values(text: str) -> str:
    """Return the lines around a payload, without values that may reveal content."""
    return "\n".join(map(_hide_line_value, text.split("\n")))


def _hide_line_value(line: str) -> str:
    name, colon, value = line.partition(":")
    word = name.strip("\0\1\r ")
    if _NAMES.match(word) or not (word or colon):
        return line
    end = "\r" if line.endswith("\r") else ""
    blank = value[: len(value) - len(value.lstrip(" "))]
    return f"{name}:{blank}{end}" if colon else end
