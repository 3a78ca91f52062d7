"""SQL of what is counted: the outcome of an exchange, for which the console uses the same words
(`cli.text.outcome`), and the findings that count."""

from a2a_proxy.protocol.finding_totals import ENDING_RULES

OUTCOME = """CASE
    WHEN e.closed IS NULL THEN 'live'
    WHEN e.flags & 2 THEN 'refused'
    WHEN length(e.error) THEN 'error'
    WHEN coalesce((SELECT value FROM text WHERE id = e.how), '') IN ('complete', '') THEN 'ok'
    ELSE 'cut' END"""
"""Expression over a row `e` of `exchange`."""

COUNTED_FINDING = f"""instr(coalesce(evidence, ''), '"follows":"{ENDING_RULES}') = 0"""
"""Condition on a row of `finding`: it does not follow from the ending of a call, whose finding is
counted instead (`finding_totals.follows_ending`)."""
