"""Extensions."""

LEFT_OUT: dict[str, str] = {}
