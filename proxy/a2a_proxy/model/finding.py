"""Findings of rules and decoders about the traffic."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Severity(IntEnum):
    """The severity of a finding. The numbers are stored."""

    INFO = 1
    WARNING = 2
    ERROR = 3


class Finding(msgspec.Struct, frozen=True):
    """One finding with its evidence."""

    rule: str
    """`A2A-GEN-001`, or `UNDECODABLE` for a finding of the decoders."""
    severity: Severity
    at: int
    summary: str
    connection: int = 0
    exchange: int = 0
    seq: int = -1
    """Frame within the exchange; -1 if the finding is about the whole exchange or connection."""
    task_id: str = ""
    confidence: str = "high"
    evidence: dict[str, str] = {}
