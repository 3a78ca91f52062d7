"""Calls that a replay needs in addition to the chosen ones: agent cards, and the calls that began
tasks."""

from collections.abc import Collection
from http import HTTPStatus

from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, SENDING_OPERATIONS, ResponseKind
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

CARD, BEGINNING, PUSH = "agent card", "began the task of", "registered the webhook of"


def needed_calls(recording: Recording, keys: Collection[int]) -> dict[int, str]:
    """Return the keys of the calls that a replay of the chosen ones needs, each with the reason.

    A client first fetches the card, learns a task's id from the call that began it, and receives
    updates at the URL that it registered: without those calls it would never send the chosen
    requests.
    """
    rows = list(recording.read_exchanges())
    tasks: dict[tuple[int, str], int] = {}
    for row in rows:
        if row.key in keys and row.exchange.task_id:
            tasks.setdefault((row.session, row.exchange.task_id), row.exchange.id)
    sessions = {row.session for row in rows if row.key in keys}
    begun: set[tuple[int, str]] = set()
    found: dict[int, str] = {}
    for row in rows:
        reason = _needed_reason(row, tasks, begun) if row.session in sessions else ""
        if reason and row.key not in keys:
            found[row.key] = reason
    return found


def needed_cards(recording: Recording, keys: Collection[int]) -> set[int]:
    """Return the keys of the agent cards that a client had when it made the chosen calls: of each
    agent the last one fetched before them. Empty for an agent of which a card is chosen.
    """
    last_cards: dict[tuple[int, str], int] = {}
    found: dict[tuple[int, str], int] = {}
    for row in recording.read_exchanges():
        agent = row.session, row.exchange.agent
        is_card = row.exchange.binding is Binding.CARD
        if row.key in keys:
            found[agent] = row.key if is_card else found.get(agent, last_cards.get(agent, 0))
        elif is_card and row.exchange.status == HTTPStatus.OK:
            last_cards[agent] = row.key
    return {key for key in found.values() if key} - set(keys)


def _needed_reason(
    row: ExchangeRow, tasks: dict[tuple[int, str], int], begun: set[tuple[int, str]]
) -> str:
    operation = OPERATION_BY_NAME.get(row.exchange.operation)
    if operation is None:
        return ""
    if operation.answer is ResponseKind.CARD:
        return CARD
    task = (row.session, row.exchange.task_id)
    if task not in tasks:
        return ""
    if operation.name in SENDING_OPERATIONS and task not in begun:
        begun.add(task)
        return f"{BEGINNING} #{tasks[task]}"
    if operation.answer is ResponseKind.PUSH_CONFIG and operation.name.startswith("Create"):
        return f"{PUSH} #{tasks[task]}"
    return ""
