"""Frames whose payload was not recorded. A rule that reads such a payload is skipped."""

from typing import Any, NoReturn, cast

from a2a_proxy.model.values import Frame


class MissingPayload(Exception):
    """A rule read a payload that was not recorded."""


class _PayloadlessFrame:
    """A frame whose attributes are all available except the payload."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    @property
    def payload(self) -> NoReturn:
        """The unrecorded payload; access raises MissingPayload."""
        raise MissingPayload


def without_payload(frame: Frame) -> Frame:
    """Return a view of the frame that raises MissingPayload when its payload is read."""
    return cast("Frame", _PayloadlessFrame(frame))
