"""Findings of rules and decoders about the traffic."""

from __future__ import annotations

from enum import IntEnum, StrEnum

import msgspec


class Severity(IntEnum):
    """The severity of a finding. The numbers are stored."""

    INFO = 1
    WARNING = 2
    ERROR = 3


class Actor(StrEnum):
    """The party that must act on a finding, as recorded in its evidence under `actor`."""

    AGENT = "agent"
    CLIENT = "client"
    EITHER = "client or agent"
    BETWEEN = "something between"
    """A proxy, gateway or connection between client and agent."""


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
