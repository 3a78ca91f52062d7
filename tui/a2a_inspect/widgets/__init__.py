"""Widgets: they display values and send messages; they read no files."""
