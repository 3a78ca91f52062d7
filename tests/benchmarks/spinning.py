"""A hook for the benchmark that computes forever."""

from __future__ import annotations

import os
from pathlib import Path

from a2a_proxy.hooks import Frame, Hook

HERE = Path(__file__).parent
CALLED = "A2A_BENCHMARK_CALLED"
"""Environment variable: the path of the file that is created when the hook has been called."""


class Spins(Hook):
    """A hook whose first call does not return."""

    def on_frame(self, frame: Frame) -> None:
        """Compute forever."""
        Path(os.environ[CALLED]).touch()
        while frame:
            pass
