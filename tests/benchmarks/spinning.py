"""A hook for the benchmark that computes for ever."""

from __future__ import annotations

import os
from pathlib import Path

from a2a_proxy.hooks import Frame, Hook

HERE = Path(__file__).parent
CALLED = "A2A_BENCHMARK_CALLED"
"""Environment variable: the file that is made when the hook has been called."""


class Spins(Hook):
    """Never comes back from its first call."""

    def on_frame(self, frame: Frame) -> None:
        """For ever."""
        Path(os.environ[CALLED]).touch()
        while frame:
            pass
