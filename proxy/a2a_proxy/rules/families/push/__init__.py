"""Push notifications."""

_NOT_YET = "it is about webhook deliveries, which are recorded but not checked yet"
LEFT_OUT: dict[str, str] = {f"A2A-PUSH-{number:03}": _NOT_YET for number in (*range(9, 14), 18, 19)}
