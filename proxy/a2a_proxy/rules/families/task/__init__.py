"""Task queries and lists."""

LEFT_OUT: dict[str, str] = {
    "A2A-TASK-008": (
        "whether two principals may share a task is the agent's own policy, and credentials are "
        "redacted in a recording"
    ),
}
