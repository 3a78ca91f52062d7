"""Record the chain of three agents again for `tests/telemetry/test_chain.py`: traced, with the
spans that its agents and client sent, and untraced.

    python tests/e2e/record_chains.py

Needs the environments that `tests/peers/setup.py --soak` makes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from a2a_proxy.recording.cassette.file import write_cassette
from a2a_proxy.recording.read.reader import Recording
from support_chain import talk
from support_otlp import http_backend
from support_spans import AGENTS_SPANS, TRACED, UNTRACED, received_spans


def keep(paths: list[Path], target: Path) -> None:
    """Write the only recording as a cassette."""
    (path,) = paths
    with Recording(path) as recording:
        write_cassette(recording, target, overwrite=True)
    target.chmod(0o644)


def main() -> None:
    """Record both chains."""
    with tempfile.TemporaryDirectory() as folder, http_backend() as received:
        keep(talk(Path(folder), trace="spans", spans_to=received.endpoint), TRACED)
        spans = msgspec.json.encode(received_spans(received))
        AGENTS_SPANS.write_bytes(msgspec.json.format(spans, indent=1) + b"\n")
    with tempfile.TemporaryDirectory() as folder:
        keep(talk(Path(folder)), UNTRACED)


if __name__ == "__main__":
    main()
