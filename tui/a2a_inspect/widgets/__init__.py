"""Widgets: they show values, send messages, and read no files."""
