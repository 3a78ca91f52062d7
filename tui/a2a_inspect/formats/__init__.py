"""Export formats: their list (`registry`) and one module each."""
