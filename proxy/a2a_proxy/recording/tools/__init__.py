"""Operations on whole recordings: merge, prune, trim, scan, redact, recheck."""
