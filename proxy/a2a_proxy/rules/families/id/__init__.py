"""Ids of tasks, contexts, messages and tenants."""
