"""Differences for people and programs: laid out in one column or two, or as JSON. Widgets only paint it."""
