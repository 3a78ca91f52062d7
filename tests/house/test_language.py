"""Phrases that do not belong in docstrings, comments, messages and documents: each has a plainer
one in its place."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("proto", "proxy", "tui")
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "recordings/README.md")

BANNED = {
    r"oct(?:ets?)\b(?!-stream)": "byte",
    r"(?:is|are|was|were|be|been|being|has|have|once|not) told": "is reported, receives, is passed",
    r"told (?:of|apart|by|what|here|once|to)"
    r"|tells? (?:of|no|them|apart|nothing)": "reports, distinguishes",
    r"(?<!there )(?:is|are|was|were) (?-i:none)|none such": "does not exist, is not a",
    r"who (?:asks|wants|reads|says)": "a caller, a client, a user",
    r"what (?:passes|came|comes|stands|belongs|goes|remains|arrives|follows)": "the noun",
    r"of those (?:that|which|who)": "the noun, repeated",
    r"one that (?:is|has|was)|ones? which": "the noun, repeated",
    r"but for": "except",
    r", for (?:it|they|there|nobody|neither|he)": "because",
    r"dear|in vain|for ever|in so far|thereof|therein": "expensive, forever",
    r"(?:stands?|stood) (?:in|at|there|before|behind|beside|between"
    r"|on|under|alone|where|here|after|around)": "is in",
    r"goes on|went on": "continues",
    r"as (?:it|they) (?:came|come|comes|stands?)": "as received, unchanged",
    r"knows (?:no|of|nothing)": "does not depend on, does not parse",
    r"there (?:is|are) that": "a direct statement",
    r"nobody (?:has|asks|reads|wants)|somebody": "the client, the agent, the caller",
    r"(?:makes|comes|came|becomes|became) of it": "the result",
}  # fmt: skip
_PATTERNS = {re.compile(rf"(?i)\b(?:{phrase})\b"): instead for phrase, instead in BANNED.items()}


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each comment and string of a module, or the whole text of a
    document."""
    if path.suffix == ".md":
        yield 1, path.read_text("utf-8")
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                yield token.start[0], token.string


def _files() -> list[Path]:
    modules = [
        path
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        if "_pb2" not in path.name
    ]
    pages = [*(ROOT / name for name in DOCUMENTS), *(ROOT / "proxy/a2a_proxy/manual").glob("*.md")]
    pages.remove(ROOT / "proxy/a2a_proxy/manual/rules.md")  # generated from the docstrings of rules
    return [path for path in (*modules, *pages) if path.exists()]


def find_phrases(path: Path) -> Iterator[str]:
    """Yield a line for each banned phrase in a file: where it is, the phrase, and a better one."""
    for line, text in _texts(path):
        for pattern, instead in _PATTERNS.items():
            for hit in pattern.finditer(text):
                at = line + text.count("\n", 0, hit.start())
                yield (
                    f"{path.relative_to(ROOT)}:{at}: "
                    f"{' '.join(hit[0].split())!r}; better: {instead}"
                )


def test_no_banned_phrase() -> None:
    found = [line for path in _files() for line in find_phrases(path)]
    assert not found, "\n".join([f"{len(found)} phrases", *found[:60]])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("the peer is told", 1),
        ("what\n    passes", 0),
        ("12 octets, one that is old", 2),
        ("application/octet-stream", 0),
    ],
)
def test_phrases_are_found(
    text: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(list(find_phrases(page))) == count
