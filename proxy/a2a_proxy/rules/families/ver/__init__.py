"""Version negotiation and dialect."""

LEFT_OUT: dict[str, str] = {
    "A2A-VER-011": (
        "the example of the 1.1 draft itself sends generations with an earlier version"
    ),
}
