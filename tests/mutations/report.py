"""The table of all mutations: their number, and the results of the expected findings.

python tests/mutations/report.py
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.run import repeat_limit
from support_framework_mutations import LIKE, apply_all
from support_mutations import MUTATIONS, judge, load_mutations

_COLUMNS = ("mutations", "found", "misplaced", "missed", "unexpected")


def main() -> None:
    """Print a row for each family, the sum, a row for each conversation with a framework, and the
    rules without a mutation."""
    load_mutations()
    repeat_limit.MAX_PER_EXCHANGE = repeat_limit.MAX_PER_KIND = 10**9
    rows: dict[str, Counter[str]] = {}
    hit: set[str] = set()
    for each in MUTATIONS:
        outcome = judge(each.sample, each.change, each.prepare)
        hit |= {place[0] for place in outcome.found}
        counts = {name: len(getattr(outcome, name)) for name in _COLUMNS[1:]}
        for name in (each.name.partition("-")[0], "all"):
            rows.setdefault(name, Counter()).update({"mutations": 1, **counts})
        if outcome.misplaced or outcome.missed or outcome.unexpected:
            print(f"{each.name}: {outcome}")
    print(f"{'family':12}" + "".join(f"{name:>12}" for name in _COLUMNS))
    for family, row in sorted(rows.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        print(f"{family:12}" + "".join(f"{row[name]:>12}" for name in _COLUMNS))
    for framework in LIKE:
        total = apply_all(framework)
        counts = {"mutations": total.mutations, **total.counts}
        print(f"{framework:12}" + "".join(f"{counts.get(name, 0):>12}" for name in _COLUMNS))
    missing = sorted(set(all_rules()) - hit)
    print(
        f"rules hit: {len(set(all_rules()) - set(missing))} of {len(all_rules())}; not hit: "
        f"{', '.join(missing) or 'none'}"
    )


if __name__ == "__main__":
    main()
