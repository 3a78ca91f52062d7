"""English sentences and new UUIDs, the same in each run.

The sentences are cut at random positions from the prose that CPython includes: its language
reference and the docstrings of its library, some megabytes. Independent random words would compress
unlike text of people or models, and a small text would repeat within one compressed block.
"""

from __future__ import annotations

import random
import re
import sysconfig
from pathlib import Path
from pydoc_data.topics import topics

_DOCUMENTATION = re.compile(r'"""(.*?)"""', re.S)
_SHORTEST = 200
"""Characters. Shorter strings are titles and fragments more often than sentences."""


class English:
    """A source of text and identifiers, seeded."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        prose = re.sub(r"[^A-Za-z0-9 .,;:()'-]+", " ", " ".join(_texts()))
        self._prose = re.sub(" +", " ", prose).encode()

    def sentence(self, size: int) -> bytes:
        """Return `size` bytes of prose that begin at the beginning of a word."""
        at = self._prose.find(b" ", int(self._random.random() * (len(self._prose) - 2 * size))) + 1
        return self._prose[at : at + size]

    def uuid(self) -> bytes:
        """Return a random UUID."""
        h = b"%032x" % self._random.getrandbits(128)
        return b"%b-%b-4%b-a%b-%b" % (h[:8], h[8:12], h[13:16], h[17:20], h[20:])


def _texts() -> list[str]:
    library = Path(sysconfig.get_path("stdlib"))
    texts = [topics[name] for name in sorted(topics)]
    for path in sorted([*library.glob("*.py"), *library.glob("[a-z]*/*.py")]):
        if "site-packages" not in path.parts and "test" not in path.parts:
            found = _DOCUMENTATION.findall(path.read_text("utf-8", errors="replace"))
            texts += [text for text in found if len(text) >= _SHORTEST]
    return texts
