"""stdio framing."""

LEFT_OUT: dict[str, str] = {}
