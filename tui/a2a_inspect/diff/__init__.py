"""Differences for people: what is asked for, and how it is laid out in one column or two. Widgets only paint it."""
