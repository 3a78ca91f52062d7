"""Widgets and screens of `a2a-inspect`, one a file: they show values of `source`, send messages, and read no file."""
