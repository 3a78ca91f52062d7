"""Artifacts."""

from __future__ import annotations
