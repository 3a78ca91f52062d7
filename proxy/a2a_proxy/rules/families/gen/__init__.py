"""Task generations."""

LEFT_OUT: dict[str, str] = {
    "A2A-GEN-010": "an agent may answer a long poll before the task has changed",
    "A2A-GEN-022": "deliveries may be late and need not cover every event",
}
