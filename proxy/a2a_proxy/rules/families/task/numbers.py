"""Numbers in requests, as JSON or as text of a query."""


def parse_integer(value: object) -> int | None:
    """Return an integer, also if it is written as text; None for any other value."""
    if (
        isinstance(value, str)
        and value.isascii()
        and value.removeprefix("-").isdigit()
        and len(value) < 20
    ):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
