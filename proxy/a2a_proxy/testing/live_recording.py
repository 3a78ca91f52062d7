"""The value of `a2a_recording`: a `Recording` that includes all traffic up to each query."""

import os
from collections.abc import Callable, Iterator

from a2a_proxy.api import Exchange, Finding, Frame, Handover, Recording, Session, Task


class LiveRecording(Recording):
    """The traffic of the agents of a test. Each query first stores the traffic since the last
    one."""

    def __init__(self, store_traffic: Callable[[], None], *paths: str | os.PathLike[str]) -> None:
        """`store_traffic` stores the traffic so far."""
        store_traffic()
        self._store_traffic = store_traffic
        super().__init__(*paths)

    def sessions(self) -> list[Session]:
        """See `Recording`."""
        self._store_traffic()
        return super().sessions()

    def exchanges(self, where: str = "") -> Iterator[Exchange]:
        """See `Recording`."""
        self._store_traffic()
        return super().exchanges(where)

    def frames(self, where: str = "", *, payloads: bool = True) -> Iterator[Frame]:
        """See `Recording`."""
        self._store_traffic()
        return super().frames(where, payloads=payloads)

    def tasks(self) -> Iterator[Task]:
        """See `Recording`."""
        self._store_traffic()
        return super().tasks()

    def task(self, task_id: str) -> Task | None:
        """See `Recording`."""
        self._store_traffic()
        return super().task(task_id)

    def findings(self) -> Iterator[Finding]:
        """See `Recording`."""
        self._store_traffic()
        return super().findings()

    def handoffs(self) -> list[Handover]:
        """See `Recording`."""
        self._store_traffic()
        return super().handoffs()
