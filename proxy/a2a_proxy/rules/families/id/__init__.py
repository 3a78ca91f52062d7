"""Ids of tasks, contexts, messages and tenants."""

from __future__ import annotations
