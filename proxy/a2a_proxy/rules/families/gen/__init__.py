"""Task generations."""

LEFT_OUT: dict[str, str] = {
    "A2A-GEN-022": "it is about webhook deliveries, which are recorded but not checked yet",
}
