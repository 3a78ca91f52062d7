"""Suppressed findings, each with a reason, from a TOML file that is kept with the code.

[[suppress]]
rule = "A2A-HTTP-009"
reason = "our gateway answers errors with 500"
operation = "GetTask"
until = 2027-01-31
"""

import datetime
import tomllib
from pathlib import Path

import msgspec

from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Finding


class Suppression(msgspec.Struct, forbid_unknown_fields=True):
    """One entry; every field except `rule` and `reason` may be omitted and then matches
    everything."""

    rule: str
    """A rule id or the beginning of rule ids."""
    reason: str
    operation: str = ""
    task: str = ""
    summary: str = ""
    """Words that occur in the finding's line."""
    until: datetime.date | None = None
    """Last day on which the entry applies."""

    def is_match(self, finding: Finding, operation: str) -> bool:
        """Return whether the entry applies to the finding."""
        return (
            finding.rule.startswith(self.rule)
            and self.operation in ("", operation)
            and self.task in ("", finding.task_id)
            and self.summary in finding.summary
        )


class _SuppressionFile(msgspec.Struct, forbid_unknown_fields=True):
    suppress: list[Suppression] = []


def read_suppressions(
    path: Path, today: datetime.date
) -> tuple[list[Suppression], list[Suppression]]:
    """Return the entries that apply today, and the expired ones.

    Raises:
        UserError: the file cannot be read, or an entry has no rule or no reason.
    """
    hint = (
        'an entry is: [[suppress]], rule = "A2A-...", reason = "..." and optionally operation, '
        "task, summary, until"
    )
    try:
        entries = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _SuppressionFile).suppress
    except OSError as wrong:
        raise UserError(
            f"cannot read {path}: {(wrong.strerror or str(wrong)).lower()}", hint
        ) from wrong
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as wrong:
        raise UserError(f"{path} is not a suppressions file: {wrong}", hint) from wrong
    for each in entries:
        if not each.reason.strip() or not each.rule.strip():
            raise UserError(f"{path}: a suppression needs a rule and a reason", hint)
    over = [each for each in entries if each.until is not None and each.until < today]
    return [each for each in entries if each not in over], over
