"""Findings that do not count, each with a reason: a TOML file that is kept beside the code.

[[suppress]]
rule = "A2A-HTTP-009"
reason = "our gateway answers errors with 500"
operation = "GetTask"
until = 2027-01-31
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.model.finding import Finding


class Suppression(msgspec.Struct, forbid_unknown_fields=True):
    """One entry; what it leaves out may be anything."""

    rule: str
    """An id, or the beginning of ids."""
    reason: str
    operation: str = ""
    task: str = ""
    summary: str = ""
    """Words that the finding's line has."""
    until: datetime.date | None = None
    """The last day on which it counts."""

    def is_match(self, finding: Finding, operation: str) -> bool:
        """The finding is one that it means."""
        return (
            finding.rule.startswith(self.rule)
            and self.operation in ("", operation)
            and self.task in ("", finding.task_id)
            and self.summary in finding.summary
        )


class _SuppressionFile(msgspec.Struct, forbid_unknown_fields=True):
    suppress: list[Suppression] = []


def read_suppressions(path: Path, today: datetime.date) -> tuple[list[Suppression], list[Suppression]]:
    """The entries that are in force today, and those that are not any more.

    Raises:
        UserError: the file cannot be read, or an entry has no rule or no reason.
    """
    hint = 'an entry is: [[suppress]], rule = "A2A-...", reason = "..." and maybe operation, task, summary, until'
    try:
        entries = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _SuppressionFile).suppress
    except OSError as wrong:
        raise UserError(f"cannot read {path}: {(wrong.strerror or str(wrong)).lower()}", hint) from wrong
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as wrong:
        raise UserError(f"{path} is no file of suppressions: {wrong}", hint) from wrong
    for each in entries:
        if not each.reason.strip() or not each.rule.strip():
            raise UserError(f"{path}: a suppression needs a rule and a reason", hint)
    over = [each for each in entries if each.until is not None and each.until < today]
    return [each for each in entries if each not in over], over
