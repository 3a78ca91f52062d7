"""Redaction with and without the sieve, of millions of texts with secrets. `tests/benchmarks/sieve`
calls it.

The texts are made of names, formats of keys, separators, and serializers (Python, Go, .NET, PHP,
percent-encoding, protobuf, JSON in JSON). A text that is redacted in one of both ways only is
printed; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support_encoded_secrets import EncodedText, find_disagreements, made_texts

BATCH = 20_000
PROGRESS_SECONDS = 60.0


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/sieve", description=__doc__)
    parser.add_argument("--texts", type=int, default=10_000_000, help="how many texts (10,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first 20,000 texts (0)")
    parser.add_argument(
        "--processes",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="how many (one per core)",
    )
    return parser.parse_args()


def compare_batch(seed: int) -> tuple[Counter[str], list[EncodedText]]:
    """Compare the texts of one seed."""
    return find_disagreements(made_texts(seed, BATCH))


def main() -> int:
    """Compare all batches and print the counts; return 1 if a text differs."""
    asked = arguments()
    counts: Counter[str] = Counter()
    printed = time.monotonic()
    with ProcessPoolExecutor(asked.processes) as pool:
        for one, different in pool.map(
            compare_batch, range(asked.seed, asked.seed + -(-asked.texts // BATCH))
        ):
            counts += one
            for text in different:
                print(f"differs: {text.kind}: {text.data!r}")
            if time.monotonic() - printed > PROGRESS_SECONDS:
                printed = time.monotonic()
                print(f"{time.strftime('%H:%M:%S')} {counts['texts']:,} texts", flush=True)
    print(
        f"{counts['texts']:,} texts, {counts['secrets']:,} "
        f"with secrets, {counts['different']:,} different"
    )
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
