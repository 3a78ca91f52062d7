"""The filter of the exchange list and its text. Pure: no widget, no recording.

The parser is imported when something is typed, so that it does not delay the first rows of a
recording.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.tree import And, Anything, Match, Node, Not, Op, to_text

VALID, INCOMPLETE, INVALID = "valid", "incomplete", "invalid"


class ListFilter(msgspec.Struct, frozen=True):
    """A typed filter and the parts chosen by key or in the tree. Each part narrows the list."""

    text: str = ""
    session: int = 0
    context: str | None = None
    """Context id; empty: exchanges without a context."""
    task: str | None = None
    """Task id; empty: exchanges without a task."""
    findings: bool = False

    def active_parts(self) -> Iterator[tuple[str, Node]]:
        """Yield the names of the fields that narrow the list, with their conditions.

        Raises QueryError if the text is not valid.
        """
        from a2a_proxy.recording.query.parser import parse_expression

        if self.session:
            yield "session", Match("rec", Op.IS, str(self.session))
        for name, field, value in (("context", "ctx", self.context), ("task", "task", self.task)):
            if value is not None:
                yield (
                    name,
                    Match(field, Op.IS, value) if value else Not(Match(field, Op.IS, Anything())),
                )
        if self.findings:
            yield "findings", Match("finding", Op.HAS, Anything())
        if (node := parse_expression(self.text)) != And():
            yield "text", node

    def make_node(self) -> Node:
        """Return all parts as one expression. Raises QueryError if the text is not valid."""
        nodes = tuple(node for _, node in self.active_parts())
        return nodes[0] if len(nodes) == 1 else And(nodes)

    def make_expression(self) -> str:
        """Return the expression as text. Raises QueryError if the text is not valid."""
        return to_text(self.make_node())

    def without_narrowest(self) -> ListFilter:
        """Return the filter without its narrowest part, in the order: text, findings, task,
        context, session."""
        for name, without in (
            ("text", ""),
            ("findings", False),
            ("task", None),
            ("context", None),
            ("session", 0),
        ):
            if getattr(self, name) != without:
                return msgspec.structs.replace(self, **{name: without})
        return self


class FilterCheck(msgspec.Struct, frozen=True):
    """Result of checking an expression while it is typed."""

    status: str
    message: str = ""
    offset: int = 0
    """Character offset of the error."""


def check_filter(text: str) -> FilterCheck:
    """Check the text, and return the error and its offset if it is not valid."""
    from a2a_proxy.recording.query.parser import parse_expression

    try:
        parse_expression(text)
    except QueryError as wrong:
        word = INCOMPLETE if wrong.incomplete else INVALID
        return FilterCheck(word, make_visible(wrong.message), wrong.at)
    return FilterCheck(VALID)


class FilterHistory:
    """Filters used in this run of the program: the newest last, each once."""

    def __init__(self) -> None:
        self._expressions: list[str] = []
        self._position = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Add a filter that was used."""
        if text:
            self._expressions = [each for each in self._expressions if each != text] + [text]
        self._position = len(self._expressions)

    def previous_or_next(self, by: int, now: str) -> str:
        """Return an older filter (`by` -1) or a newer one (1); after the newest, the text `now`."""
        if self._position >= len(self._expressions):
            self._draft = now
        self._position = max(0, min(self._position + by, len(self._expressions)))
        return (
            self._expressions[self._position]
            if self._position < len(self._expressions)
            else self._draft
        )
