"""A frame of which the payload was not recorded, as rules see it: who asks for the payload has nothing to say."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from a2a_proxy.model.frame import Frame


class MissingPayload(Exception):
    """A rule asked for what was not recorded."""


class _PayloadlessFrame:
    """A frame without payload: all else of it can be asked."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    @property
    def payload(self) -> NoReturn:
        """Nobody knows it."""
        raise MissingPayload


def without_payload(frame: Frame) -> Frame:
    """The frame, which refuses to tell its payload with `MissingPayload`."""
    return cast("Frame", _PayloadlessFrame(frame))
