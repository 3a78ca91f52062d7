"""Task state machine."""

from __future__ import annotations
