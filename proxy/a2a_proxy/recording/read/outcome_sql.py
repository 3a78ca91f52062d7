"""SQL of the outcome of an exchange; the console uses the same words (`cli.text.outcome`)."""

OUTCOME = """CASE
    WHEN e.closed IS NULL THEN 'live'
    WHEN e.flags & 2 THEN 'refused'
    WHEN length(e.error) THEN 'error'
    WHEN coalesce((SELECT value FROM text WHERE id = e.how), '') IN ('complete', '') THEN 'ok'
    ELSE 'cut' END"""
"""Expression over a row `e` of `exchange`."""
