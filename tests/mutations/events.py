"""Events of a stream in any version and binding: read, change, insert and create them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from mutations.objects import alter, held
from mutations.pick import replace
from support_mutations import MS, Ex, Msg, Talk

SECOND = 1000 * MS


def read(message: Msg) -> dict[str, Any]:
    """Return a copy of the event."""
    found: dict[str, Any] = held(message.value)
    return found


def state_of(message: Msg) -> str:
    """Return the state in the form `WORKING`, from any spelling; empty if it has none."""
    state: str = (read(message).get("status") or {}).get("state", "")
    return state.removeprefix("TASK_STATE_").upper().replace("-", "_")


def set_state(message: Msg, state: str) -> None:
    """Set another state, in the spelling of the version."""

    def put(event: Any) -> None:
        long = event["status"]["state"].startswith("TASK_STATE_")
        event["status"]["state"] = (
            f"TASK_STATE_{state}" if long else state.lower().replace("_", "-")
        )

    alter(message, put)


def wrapped(like: Msg, name: str, event: dict[str, Any]) -> Msg:
    """Return another event in the envelope of an event of the same stream; `name` is its wrapper in
    1.0."""
    made = like.again()
    value = like.value
    if "kind" in read(like):
        value["result"] = event
    elif "jsonrpc" in value:
        value["result"] = {name: event}
    else:
        value = {name: event}
    replace(made, value)
    return made


def message_of(like: Msg, text: str = "by the way") -> Msg:
    """Return a message of the agent, made from the one in an update, with an id of its own."""
    said = dict(read(like)["status"]["message"])
    said["messageId"] = "said-" + said["messageId"]
    body = "content" if "content" in said else "parts"
    said[body] = [dict(said[body][0], text=text)]
    old = like.schema.startswith("a2a.v1.")
    return wrapped(like, "msg" if old else "message", said)


def insert(exchange: Ex, index: int, message: Msg) -> Msg:
    """Insert an event at the time of the one before it."""
    message.at = exchange.answers[index - 1].at
    exchange.answers.insert(index, message)
    return message


def swap(exchange: Ex, one: int, two: int) -> None:
    """Swap two events; each gets the time of the other."""
    answers = exchange.answers
    answers[one], answers[two] = answers[two], answers[one]
    answers[one].at, answers[two].at = answers[two].at, answers[one].at


def wait(talk: Talk, seconds: float) -> None:
    """Extend the recording by this time, so that deadlines pass."""
    end = max(talk.length, *(each.ended for each in talk.exchanges))
    talk.length = end + int(seconds * SECOND)


def earlier(stamp: str, seconds: int) -> str:
    """Return a timestamp that is this many seconds earlier."""
    moment = datetime.fromisoformat(stamp) - timedelta(seconds=seconds)
    return moment.isoformat().replace("+00:00", "Z")
