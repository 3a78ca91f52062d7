"""Findings of rules and decoders about the traffic."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated

import msgspec

from a2a_proxy.model.fields import Ident, Row, Text, Time, Word


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

    rule: Word
    """`A2A-GEN-001`, or `UNDECODABLE` for a finding of the decoders."""
    severity: Severity
    at: Time
    summary: Text
    connection: int = 0
    exchange: int = 0
    seq: int = -1
    """Frame within the exchange; -1 if the finding is about the whole exchange or connection."""
    task_id: Annotated[Ident, Row("task")] = ""
    confidence: Word = "high"
    evidence: dict[str, str] = {}
