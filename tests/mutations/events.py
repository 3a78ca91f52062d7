"""Events of a stream, whichever line and binding it speaks: read, changed, put in and made anew."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from mutations.objects import alter, held
from mutations.pick import replace
from support_mutations import MS, Ex, Msg, Talk

SECOND = 1000 * MS


def read(message: Msg) -> dict[str, Any]:
    """A copy of the event."""
    found: dict[str, Any] = held(message.value)
    return found


def state_of(message: Msg) -> str:
    """`WORKING`, in any spelling; empty where it has none."""
    state: str = (read(message).get("status") or {}).get("state", "")
    return state.removeprefix("TASK_STATE_").upper().replace("-", "_")


def set_state(message: Msg, state: str) -> None:
    """Another state, as this line spells it."""

    def put(event: Any) -> None:
        long = event["status"]["state"].startswith("TASK_STATE_")
        event["status"]["state"] = f"TASK_STATE_{state}" if long else state.lower().replace("_", "-")

    alter(message, put)


def wrapped(like: Msg, name: str, event: dict[str, Any]) -> Msg:
    """Another event, in the envelope that one of the same stream has; `name` as 1.0 wraps it."""
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
    """A message of the agent, from the one in an update, with an id of its own."""
    said = dict(read(like)["status"]["message"])
    said["messageId"] = "said-" + said["messageId"]
    body = "content" if "content" in said else "parts"
    said[body] = [dict(said[body][0], text=text)]
    old = like.schema.startswith("a2a.v1.")
    return wrapped(like, "msg" if old else "message", said)


def insert(exchange: Ex, index: int, message: Msg) -> Msg:
    """One more event, at the time of the one before it."""
    message.at = exchange.answers[index - 1].at
    exchange.answers.insert(index, message)
    return message


def swap(exchange: Ex, one: int, two: int) -> None:
    """Two events in each other's place, at each other's time."""
    answers = exchange.answers
    answers[one], answers[two] = answers[two], answers[one]
    answers[one].at, answers[two].at = answers[two].at, answers[one].at


def wait(talk: Talk, seconds: float) -> None:
    """The recording goes on for so long after everything else: deadlines come."""
    end = max(talk.length, *(each.ended for each in talk.exchanges))
    talk.length = end + int(seconds * SECOND)


def earlier(stamp: str, seconds: int) -> str:
    """A timestamp of so many seconds before."""
    moment = datetime.fromisoformat(stamp) - timedelta(seconds=seconds)
    return moment.isoformat().replace("+00:00", "Z")
