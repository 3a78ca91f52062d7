"""Messages of the recorder process on its status pipe: one JSON object per line, credentials
replaced by labels."""

from typing import Any

import msgspec

from a2a_proxy.model import name_json
from a2a_proxy.model.values import Exchange, Finding, MissedGenerations
from a2a_proxy.protocol.finding_totals import RuleTotal


class RecorderReady(msgspec.Struct, frozen=True, tag="ready"):
    """The recording is open and belongs to this recorder."""

    path: str
    session: int


class RecorderFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The recorder cannot continue, with the reason; it exits after this."""

    message: str
    hint: str = ""
    permanent: bool = True
    """Whether a new recorder would fail the same way."""


class ExchangeStatus(msgspec.Struct, frozen=True, tag="seen"):
    """An exchange ended, or is still open after a while."""

    exchange: Exchange
    """The exchange without headers, which the console does not print."""
    upstream: str
    live: bool
    lag: int
    """Time by which the recorder is behind the relay, ns."""
    ending: dict[str, Any] | None = None
    """Why it did not end well, as far as it is known when it ends: `Ending.to_object`."""


class FindingStatus(msgspec.Struct, frozen=True, tag="found"):
    """A finding."""

    finding: Finding
    operation: str = ""
    """Operation of its exchange; empty if that has ended, or has none."""
    title: str = ""
    """Title of its rule."""


class GapClosedStatus(msgspec.Struct, frozen=True, tag="healed"):
    """Generations missing on a stream were delivered to its client later."""

    task_id: str
    missed: MissedGenerations
    operation: str = ""
    """Operation of the exchange that closed the gap; empty if unknown."""


Line = ExchangeStatus | FindingStatus | GapClosedStatus
"""A message that the console prints as a line about traffic."""


class ReceiverStatus(msgspec.Struct, frozen=True, tag="receiver"):
    """A client configured a webhook to which notifications do not pass here."""

    receiver: str
    """Its scheme, host and port: `http://client.example`."""


class LinesSkipped(msgspec.Struct, frozen=True, tag="skipped"):
    """Lines that were not sent because there were too many; all of them are in the recording."""

    count: int


class LinesEnd(msgspec.Struct, frozen=True, tag="end"):
    """All lines of one commit have been sent, so that the console can print them in order."""


class TroubleStarted(msgspec.Struct, frozen=True, tag="troubled"):
    """A problem with the recording that the user should know; recording continues, or is
    retried."""

    message: str
    hint: str = ""


class TroubleEnded(msgspec.Struct, frozen=True, tag="mended"):
    """A reported problem is over."""

    message: str


class RecorderProgress(msgspec.Struct, frozen=True, tag="progress"):
    """The recorder's position in the journal."""

    segment: int
    offset: int


class RuleSummary(msgspec.Struct, frozen=True):
    """The findings of one rule and severity in a session."""

    total: RuleTotal
    title: str
    """Title of the rule."""


class RecorderDone(msgspec.Struct, frozen=True, tag="done"):
    """Everything is recorded; the recorder exits."""

    connections: int
    frames: int
    exchanges: int
    ok: int
    """Exchanges that ended well; the next three count the others."""
    error: int
    """The agent returned an error."""
    cut: int
    """A peer broke off."""
    refused: int
    """The proxy answered."""
    tasks: int
    findings: int
    """Number of findings, with the repetitions that the recording does not list."""
    error_findings: int
    """Findings of severity ERROR."""
    warning_findings: int
    """Findings of severity WARNING."""
    lost: int
    """Bytes that were relayed but are not in the recording."""
    missing: str = ""
    """What the capture lacks, in words; empty if it is complete."""
    chosen: str = ""
    """What the user chose not to read, in words."""
    rules: tuple[RuleSummary, ...] = ()
    """Findings by rule, the most severe first."""


Status = (
    RecorderReady
    | RecorderFailed
    | ExchangeStatus
    | FindingStatus
    | GapClosedStatus
    | ReceiverStatus
    | LinesSkipped
    | LinesEnd
    | TroubleStarted
    | TroubleEnded
    | RecorderProgress
    | RecorderDone
)

encode = name_json.encode_json
"""Encodes a status as one line without its line end."""


def decode_status(line: bytes) -> Status:
    """Return the message of a line. Raises msgspec.DecodeError."""
    status: Status = name_json.decode_json(line, Status)
    return status
