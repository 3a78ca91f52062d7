"""Translation of an expression tree to SQL, for frames or for exchanges.

A frame matches if its exchange does. An exchange matches a condition by itself or by at least one
of its frames; two conditions may be met by different frames. NOT is the negation of that:
`-state:failed` finds exchanges without any frame in this state.
"""

from enum import Enum

from a2a_proxy.recording.query.columns import EXCHANGE_OF_FRAME, where_path
from a2a_proxy.recording.query.conditions import Sql, join_conditions
from a2a_proxy.recording.query.fields import COST_PARSE, FIELDS
from a2a_proxy.recording.query.tree import And, Match, Node, Not
from a2a_proxy.recording.store.schema import SESSION_SHIFT

_NUMBER = (1 << SESSION_SHIFT) - 1


class Rows(Enum):
    """Kind of the rows in the result."""

    FRAMES = "f"
    EXCHANGES = "e"


def make_condition(node: Node, rows: Rows, *, few: bool = False) -> Sql:
    """Return the condition, for `frame f` or `exchange e`.

    If the whole expression is cheap, conditions on the other table are evaluated for many rows with
    one scan of it. For `few` rows the scan would cost more than the rows themselves.
    """
    return _node_condition(node, rows, few or node_cost(node) > 0)


def _node_condition(node: Node, rows: Rows, by_row: bool) -> Sql:
    """Return the condition of a node. With `by_row` the other table is queried again for every
    row."""
    if isinstance(node, Not):
        return _node_condition(node.item, rows, by_row).insert_into("NOT {}")
    if isinstance(node, Match):
        return (
            _frame_condition(node, by_row)
            if rows is Rows.FRAMES
            else _exchange_condition(node, by_row)
        )
    if not node.items:
        return Sql("1")
    items = sorted(node.items, key=node_cost)  # cheap conditions are evaluated first
    return join_conditions(
        "AND" if isinstance(node, And) else "OR",
        *(_node_condition(item, rows, by_row) for item in items),
    )


def own_condition(node: Node) -> Sql | None:
    """Return a condition on the columns of `exchange e` alone that implies the whole expression.

    The expression may match more exchanges. None if there is no such condition.
    """
    if isinstance(node, Match):
        return _own_exchange_condition(node)
    if isinstance(node, Not):
        item = node.item
        exact = isinstance(item, Match) and not _has_frames(item)
        return (
            _node_condition(item, Rows.EXCHANGES, by_row=True).insert_into("NOT {}")
            if exact
            else None
        )
    parts = [own_condition(item) for item in node.items]
    known = [part for part in parts if part is not None]
    if not known or (isinstance(node, And) and len(known) < len(parts)):
        return None
    return join_conditions("AND" if isinstance(node, And) else "OR", *known)


def node_cost(node: Node) -> int:
    """Return the highest cost of its conditions (see `fields`); 0 if only columns are read."""
    if isinstance(node, Match):
        return COST_PARSE if node.field.startswith("$") else FIELDS[node.field].cost
    items = (node.item,) if isinstance(node, Not) else node.items
    return max(map(node_cost, items), default=0)


def _frame_condition(match: Match, by_row: bool) -> Sql:
    own = _own_frame_condition(match)
    field = FIELDS.get(match.field)
    if (
        field is None
        or field.exchange is None
        or (own is not None and (match.side or not field.covers))
    ):
        assert own is not None
        return own
    condition = field.exchange(match)
    if by_row:
        found = condition.insert_into(
            f"EXISTS (SELECT 1 FROM exchange e WHERE e.id = {EXCHANGE_OF_FRAME} AND {{}})"
        )
    else:
        found = condition.insert_into(
            f"{EXCHANGE_OF_FRAME} IN (SELECT e.id FROM exchange e WHERE {{}})"
        )
    return join_conditions("OR", own, found) if own is not None else found


def _own_frame_condition(match: Match) -> Sql | None:
    """Return the condition on the frame itself, with its direction if a side is given."""
    make = where_path if match.field.startswith("$") else FIELDS[match.field].frame
    if make is None:
        return None
    condition = make(match)
    if not match.side:
        return condition
    side = Sql(
        "f.shape IN (SELECT id FROM shape WHERE direction = ?)", (int(match.side == "resp"),)
    )
    return join_conditions("AND", side, condition)


def _own_exchange_condition(match: Match) -> Sql | None:
    """Return the condition on the exchange itself, or None."""
    field = FIELDS.get(match.field)
    if field is None or field.exchange is None or (match.side and field.frame is not None):
        return None
    return field.exchange(match)


def _has_frames(match: Match) -> bool:
    """Whether frames may match although the exchange itself does not."""
    field = FIELDS.get(match.field)
    if field is not None and field.alone and _own_exchange_condition(match) is not None:
        return False
    return field is None or field.frame is not None


def _exchange_condition(match: Match, by_row: bool) -> Sql:
    of_exchange = _own_exchange_condition(match)
    parts = [] if of_exchange is None else [of_exchange]
    if _has_frames(match) and (of_frame := _own_frame_condition(match)) is not None:
        if by_row:
            parts.append(
                of_frame.insert_into(
                    f"EXISTS (SELECT 1 FROM frame f WHERE f.session = e.id >> {SESSION_SHIFT}"
                    f" AND f.exchange = e.id & {_NUMBER} AND {{}})"
                )
            )
        else:
            parts.append(
                of_frame.insert_into(
                    f"e.id IN (SELECT {EXCHANGE_OF_FRAME} FROM frame f WHERE {{}})"
                )
            )
    return join_conditions("OR", *parts)
