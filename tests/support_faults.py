"""The manual's table of the errors that rules find in the traffic of real peers."""

from __future__ import annotations

from pathlib import Path

import a2a_proxy

FAULTS = Path(a2a_proxy.__file__).parent / "manual" / "faults.md"


def explained(pair: str) -> set[str]:
    """Return the rules in the rows for this pair of peers (`js-to-sdk1`)."""
    rows = [
        line.split("|")
        for line in FAULTS.read_text("utf-8").splitlines()
        if line.startswith("| A2A-")
    ]
    return {rule.strip() for row in rows if f"`{pair}`" in row[2] for rule in row[1].split(",")}
