"""Terminal screen and headless commands that read recordings.

Opens no network connection except in `web`, `cli.otlp` and `cli.archive`.
"""
