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

    def active_parts(self) -> Iterator[tuple[str, Node]]:
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
        nodes = tuple(node for _, node in self.active_parts())
        return nodes[0] if len(nodes) == 1 else And(nodes)

    def expression(self) -> str:
        """The same as it is typed. Raises QueryError where the text is wrong."""
        return to_text(self.node())

    def without_narrowest(self) -> ListFilter:
        """Without the part that narrows most: what was typed, then findings, task, context, session."""
        for name, without in (("text", ""), ("findings", False), ("task", None), ("context", None), ("session", 0)):
            if getattr(self, name) != without:
                return msgspec.structs.replace(self, **{name: without})
        return self


class FilterCheck(msgspec.Struct, frozen=True):
    """What there is to say about an expression while it is typed."""

    status: str
    message: str = ""
    offset: int = 0
    """Offset of what is wrong."""


def check_filter(text: str) -> FilterCheck:
    """In a word, and where it is wrong, what and where."""
    from a2a_proxy.recording.query.parser import parse

    try:
        parse(text)
    except QueryError as wrong:
        word = INCOMPLETE if wrong.incomplete else INVALID
        return FilterCheck(word, make_visible(wrong.message), wrong.at)
    return FilterCheck(VALID)


class FilterHistory:
    """What was typed before in this sitting; the newest last, each once."""

    def __init__(self) -> None:
        self._expressions: list[str] = []
        self._position = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """It was used."""
        if text:
            self._expressions = [each for each in self._expressions if each != text] + [text]
        self._position = len(self._expressions)

    def previous_or_next(self, by: int, now: str) -> str:
        """An older one (-1) or a newer one; after the newest what is there now."""
        if self._position >= len(self._expressions):
            self._draft = now
        self._position = max(0, min(self._position + by, len(self._expressions)))
        return self._expressions[self._position] if self._position < len(self._expressions) else self._draft
