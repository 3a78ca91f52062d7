"""What the recorder process says on its status pipe: one JSON object a line, credentials already replaced by labels."""

from __future__ import annotations

import msgspec

from a2a_proxy.model import name_json
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.task import MissedGenerations


class RecorderReady(msgspec.Struct, frozen=True, tag="ready"):
    """The recording is open and belongs to this recorder."""

    path: str
    session: int


class RecorderFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The recorder cannot go on, and why; it exits after this."""

    message: str
    hint: str = ""
    permanent: bool = True
    """A new recorder would fail the same way."""


class ExchangeStatus(msgspec.Struct, frozen=True, tag="seen"):
    """An exchange ended, or is still open after a while."""

    exchange: Exchange
    """Without headers: a line for people needs none."""
    upstream: str
    live: bool
    lag: int
    """How far the recorder is behind the relay, ns."""


class FindingStatus(msgspec.Struct, frozen=True, tag="found"):
    """A finding."""

    finding: Finding
    operation: str = ""
    """Of its exchange; empty where that is over, or has none."""


class GapClosedStatus(msgspec.Struct, frozen=True, tag="healed"):
    """Generations that a stream had left out were made good to its client."""

    task_id: str
    missed: MissedGenerations
    operation: str = ""
    """Of the exchange that did it; empty where that is unknown."""


class LinesSkipped(msgspec.Struct, frozen=True, tag="skipped"):
    """Lines that were not sent because there were too many; all of them are in the recording."""

    count: int


class TroubleStarted(msgspec.Struct, frozen=True, tag="troubled"):
    """Something hinders the recording and the user should know; recording goes on, or is tried again."""

    message: str
    hint: str = ""


class TroubleEnded(msgspec.Struct, frozen=True, tag="mended"):
    """Trouble that was told is over."""

    message: str


class RecorderProgress(msgspec.Struct, frozen=True, tag="progress"):
    """Where the recorder is."""

    segment: int
    offset: int
    behind: int
    """Bytes of journal not recorded yet."""


class RecorderDone(msgspec.Struct, frozen=True, tag="done"):
    """Everything is recorded; the recorder exits."""

    connections: int
    frames: int
    exchanges: int
    ok: int
    """Exchanges that ended well; the next three count those that did not."""
    error: int
    """The agent said no."""
    cut: int
    """Somebody broke off."""
    refused: int
    """The proxy answered."""
    tasks: int
    findings: int
    error_findings: int
    """Those of severity ERROR."""
    warning_findings: int
    """Those of severity WARNING."""
    lost: int
    """Bytes that passed but are not in the recording."""
    clean: bool


Status = (
    RecorderReady
    | RecorderFailed
    | ExchangeStatus
    | FindingStatus
    | GapClosedStatus
    | LinesSkipped
    | TroubleStarted
    | TroubleEnded
    | RecorderProgress
    | RecorderDone
)

encode = name_json.encode
"""Status -> one line without its line end."""


def decode(line: bytes) -> Status:
    """Return what a line says. Raises msgspec.DecodeError."""
    said: Status = name_json.decode(line, Status)
    return said
