"""What narrows the list of exchanges, and what is typed to do so. Pure: no widget, no recording.

The parser is imported when something is typed: the first rows of a recording do not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.tree import And, Anything, Match, Node, Not, Op, to_text

VALID, INCOMPLETE, INVALID = "valid", "incomplete", "invalid"


class ListFilter(msgspec.Struct, frozen=True):
    """A filter that was typed, and what was chosen by key or in the tree. Each of them narrows."""

    text: str = ""
    session: int = 0
    context: str | None = None
    """The empty one: exchanges without a context."""
    task: str | None = None
    """The empty one: exchanges without a task."""
    findings: bool = False

    def parts(self) -> Iterator[tuple[str, Node]]:
        """Names of the fields that narrow, with what they ask for. Raises QueryError where the text is wrong."""
        from a2a_proxy.recording.query.parser import parse

        if self.session:
            yield "session", Match("rec", Op.IS, str(self.session))
        for name, field, value in (("context", "ctx", self.context), ("task", "task", self.task)):
            if value is not None:
                yield name, Match(field, Op.IS, value) if value else Not(Match(field, Op.IS, Anything()))
        if self.findings:
            yield "findings", Match("finding", Op.HAS, Anything())
        if (node := parse(self.text)) != And():
            yield "text", node

    def node(self) -> Node:
        """All of it as one expression. Raises QueryError where the text is wrong."""
        nodes = tuple(node for _, node in self.parts())
        return nodes[0] if len(nodes) == 1 else And(nodes)

    def expression(self) -> str:
        """The same as it is typed. Raises QueryError where the text is wrong."""
        return to_text(self.node())

    def wider(self) -> ListFilter:
        """Without the part that narrows most: what was typed, then findings, task, context, session."""
        for name, without in (("text", ""), ("findings", False), ("task", None), ("context", None), ("session", 0)):
            if getattr(self, name) != without:
                return msgspec.structs.replace(self, **{name: without})
        return self


class Judgement(msgspec.Struct, frozen=True):
    """What there is to say about an expression while it is typed."""

    word: str
    message: str = ""
    at: int = 0
    """Offset of what is wrong."""


def judged(text: str) -> Judgement:
    """In a word, and where it is wrong, what and where."""
    from a2a_proxy.recording.query.parser import parse

    try:
        parse(text)
    except QueryError as wrong:
        word = INCOMPLETE if wrong.incomplete else INVALID
        return Judgement(word, make_visible(wrong.message), wrong.at)
    return Judgement(VALID)


class History:
    """What was typed before in this sitting; the newest last, each once."""

    def __init__(self) -> None:
        self._past: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """It was used."""
        if text:
            self._past = [each for each in self._past if each != text] + [text]
        self._at = len(self._past)

    def step(self, by: int, now: str) -> str:
        """An older one (-1) or a newer one; after the newest what is there now."""
        if self._at >= len(self._past):
            self._draft = now
        self._at = max(0, min(self._at + by, len(self._past)))
        return self._past[self._at] if self._at < len(self._past) else self._draft
