"""Artifacts."""

from __future__ import annotations

LEFT_OUT: dict[str, str] = {}
