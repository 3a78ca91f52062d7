from __future__ import annotations

import pytest

from a2a_proxy.redaction.entropy import looks_made


@pytest.mark.parametrize(
    ("word", "made"),
    [
        (b"aB3dE5fG7hJ2kL4mN6pQ8rS1", True),
        (b"aB3dE5fG7hJ2kL4mN6pQ8rS1==", True),
        (b"aB3dE5fG7hJ2kL4mN6pQ8rS", False),
        (b"ab3de5fg7hj2kl4mn6pq8rs1", False),
        (b"aBcdEfgGhhJjkLlmNnpQqrSs", False),
        (b"aB-dE_fG-hJ_kL-mN_pQ-rS_", False),
        (b"aaaaaaaaBBBBBBBB11111111", False),
        (b"aB1aB1aB1aB1aB1aB1aB1aB1", False),
    ],
)
def test_a_key_mixes_capitals_small_letters_and_digits_at_random(word: bytes, made: bool) -> None:
    """Not words that are short, lack one of the three, change rarely between them, or repeat few
    characters."""
    assert looks_made(word) is made
