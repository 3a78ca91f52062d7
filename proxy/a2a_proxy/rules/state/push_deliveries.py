"""Webhook deliveries: what each contains, the attempts to deliver each event, and the deliveries
whose configuration is not known yet (A2A 1.0 section 4.3.3).
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple, TypedDict

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind, Exchange
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts.compared_values import parse_timestamp
from a2a_proxy.rules.facts.credentials import Credential, find_credentials
from a2a_proxy.rules.facts.naming import event_phrase
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG, may_have_push_config
from a2a_proxy.rules.state.push_receivers import (
    PushReceiver,
    active_receivers,
    learn_receivers,
    url_key,
)
from a2a_proxy.rules.state.records import ExchangeRecord, TaskRecord
from a2a_proxy.rules.state.session_state import SessionState
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL

TOKEN_HEADER = "x-a2a-notification-token"
WRAPPERS = ("task", "message", "statusUpdate", "artifactUpdate")
GRACE = 10_000_000_000
"""Time for which a configuration still counts after its deletion, and within which its creation is
answered, ns."""
_TASK_EVENTS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT})
_SECOND_NS = 1_000_000_000
_SENT_NOTE, _HELD_NOTE = "push deliveries", "push deliveries held"
_READ, _NOTED, _JUDGED, _ATTEMPT_NOTE = (
    "delivery",
    "delivery noted",
    "deliveries judged",
    "push attempt",
)
_MAX_SENT, _MAX_EVENTS, _MAX_ATTEMPTS = 2000, 64, 16
"""Maximum number of remembered pairs of task and URL, of events of each, and of attempts of each
event."""
_MAX_HELD_TASKS, _MAX_HELD = 1000, 32
"""Maximum number of tasks with deliveries whose configuration is not known yet, and of such
deliveries of each."""
_MAX_EXAMINED = 1000
"""Maximum number of open exchanges that are examined for one delivery."""
_MAX_VALUE = 200
"""Maximum characters of a header field that is compared with a token."""


class Delivery(msgspec.Struct, frozen=True):
    """One delivery. Its fields are plain, so that a deadline can carry it in its note."""

    agent: str
    """The agent that sent it; empty if only the task id may tell."""
    task_id: str
    url: str
    """The URL in the form of `url_key`."""
    exchange: int
    connection: int
    seq: int
    started: int
    """First byte of the request, ns."""
    source: str
    """Host from which it was sent."""
    digest: str
    """Digest of the body; if it is not known completely, another value for each delivery."""
    is_whole: bool
    """Whether the body is known completely."""
    event: int
    state: int
    generation: int
    stamp: int
    """Timestamp of the status, ns; negative if it has no time zone, 0 if there is none."""
    members: list[str]
    """The members of a StreamResponse in the body."""
    bare: str
    """The object in the body in words, if it is not inside one of these members; empty if it is no
    A2A object."""
    token: str
    credentials: list[Credential]
    values: list[str]
    """Values of all header fields."""

    @property
    def record(self) -> ExchangeRecord:
        """A record of its exchange, for findings about it after its end."""
        place = (self.exchange, self.connection, "")
        return ExchangeRecord(*place, Binding.WEBHOOK, "", self.started, task_id=self.task_id)

    def encode(self) -> str:
        """Return the text from which `decode_delivery` returns the delivery."""
        return msgspec.json.encode(self).decode()


def decode_delivery(text: str) -> Delivery:
    """Return the delivery that `encode` returned the text of."""
    return msgspec.json.decode(text, type=Delivery)


class Attempt(TypedDict):
    """One attempt to deliver an event."""

    exchange: int
    started: int
    closed: int
    """0 while it is open, or if the end is not known."""
    status: int
    """The receiver's HTTP status; 0 if it is not known."""


class NewestEvent(TypedDict):
    """The newest event that was delivered to a URL, and its attempt."""

    generation: int
    stamp: int
    state: int
    exchange: int
    started: int
    closed: int


class SentEvents(TypedDict):
    """The deliveries for one task at one URL."""

    agent: str
    attempts: dict[str, list[Attempt]]
    """Attempts by the digest of the body, the latest events last."""
    newest: NewestEvent | None
    states: dict[str, int]
    """Start of the last delivery of each state, ns, by its number as text."""
    last: Attempt | None
    """The latest attempt."""
    is_watched: bool
    """Whether a deadline for its next delivery is scheduled."""


class NotedDelivery(NamedTuple):
    """A delivery with what was known about its URL before it."""

    delivery: Delivery
    sent: SentEvents
    earlier: list[Attempt]
    """Earlier attempts to deliver the same body."""
    newest: NewestEvent | None


def read_delivery(context: RuleContext) -> Delivery:
    """Return the delivery in the frame. Raises MissingPayload if its payload was not recorded."""
    context.needs_payload()
    found: Delivery | None = context.cache.get(_READ)
    if found is None:
        found = context.cache[_READ] = _read_frame(context)
    return found


def _read_frame(context: RuleContext) -> Delivery:
    frame, exchange, body = context.frame, context.exchange, context.value
    body = body if isinstance(body, dict) else {}
    members = [name for name in WRAPPERS if isinstance(body.get(name), dict)]
    is_whole = bool(frame.payload) and not frame.truncated
    return Delivery(
        agent="" if context.record.agent == context.record.upstream else context.record.agent,
        task_id=frame.task_id,
        url=delivery_url(exchange),
        exchange=exchange.id,
        connection=exchange.connection,
        seq=frame.seq,
        started=exchange.started,
        source=context.record.client,
        digest=blake2b(frame.payload, digest_size=8).hexdigest() if is_whole else f"#{exchange.id}",
        is_whole=is_whole,
        event=int(frame.event),
        state=frame.state,
        generation=frame.generation,
        stamp=parse_timestamp(context.status_summary.stamp),
        members=members,
        bare="" if members else event_phrase(frame, ""),
        token=context.request_header(TOKEN_HEADER),
        credentials=find_credentials(exchange),
        values=[
            value.decode("latin-1")
            for _, value in exchange.request_headers
            if len(value) <= _MAX_VALUE
        ],
    )


def delivery_url(exchange: Exchange) -> str:
    """Return the URL of a delivery in the form of `url_key`."""
    target = exchange.target
    return url_key(target if "://" in target.partition("?")[0] else f"{exchange.authority}{target}")


def owner_task(session: SessionState, agent: str, task_id: str) -> TaskRecord | None:
    """Return the record of the task of a delivery from `agent`; None if no agent has shown it
    yet."""
    return session.task_record(session.agent_of_delivery(agent, task_id), task_id)


# --- attempts


def note_delivery(context: RuleContext) -> NotedDelivery:
    """Record the attempt in the frame, once, and return what was known before it."""
    found: NotedDelivery | None = context.cache.get(_NOTED)
    if found is None:
        found = context.cache[_NOTED] = _record_attempt(context, read_delivery(context))
    return found


def _record_attempt(context: RuleContext, delivery: Delivery) -> NotedDelivery:
    key = f"{delivery.task_id} {delivery.url}"
    all_sent: dict[str, SentEvents] = context.session.notes.setdefault(_SENT_NOTE, {})
    sent = all_sent.pop(key, None) or SentEvents(
        agent=delivery.agent,
        attempts={},
        newest=None,
        states={},
        last=None,
        is_watched=False,
    )
    all_sent[key] = sent
    if len(all_sent) > _MAX_SENT:
        del all_sent[next(iter(all_sent))]
    attempts = sent["attempts"].pop(delivery.digest, [])
    made = Attempt(exchange=delivery.exchange, started=delivery.started, closed=0, status=0)
    sent["attempts"][delivery.digest] = [*attempts, made][-_MAX_ATTEMPTS:]
    if len(sent["attempts"]) > _MAX_EVENTS:
        del sent["attempts"][next(iter(sent["attempts"]))]
    sent["last"] = made
    context.record.writable_notes()[_ATTEMPT_NOTE] = [key, delivery.digest]
    newest = sent["newest"]
    if newest is None or not is_older(delivery, newest):
        sent["newest"] = _newest_event(delivery, newest)
    if delivery.state:
        sent["states"][str(delivery.state)] = delivery.started
    return NotedDelivery(delivery, sent, attempts, newest)


def _newest_event(delivery: Delivery, before: NewestEvent | None) -> NewestEvent:
    """Return the facts of the newest event; what it does not have itself is taken from the one
    before."""
    state, stamp, generation = (
        (before["state"], before["stamp"], before["generation"]) if before else (0, 0, 0)
    )
    return NewestEvent(
        generation=delivery.generation or generation,
        stamp=delivery.stamp or stamp,
        state=delivery.state or state,
        exchange=delivery.exchange,
        started=delivery.started,
        closed=0,
    )


def is_older(delivery: Delivery, newest: NewestEvent) -> bool:
    """Whether the event is older than an event delivered before, by generation, state or
    timestamp."""
    if delivery.event not in _TASK_EVENTS:
        return False
    if delivery.generation > 0 and newest["generation"] > 0:
        return delivery.generation < newest["generation"]
    if newest["state"] in TERMINAL:
        return delivery.state not in TERMINAL
    one, other = delivery.stamp, newest["stamp"]
    if one * other <= 0 and delivery.state == TaskState.SUBMITTED:
        return newest["state"] == TaskState.WORKING
    return one * other > 0 and abs(other) - abs(one) > _SECOND_NS


def sent_events(session: SessionState, task_id: str, url: str) -> SentEvents | None:
    """Return the deliveries for a task at a URL; None if there were none."""
    found: SentEvents | None = session.notes.get(_SENT_NOTE, {}).get(f"{task_id} {url}")
    return found


def is_served(session: SessionState, agent: str, url: str) -> bool:
    """Whether the receiver at a URL has acknowledged the last event of a task of this agent."""
    all_sent: dict[str, SentEvents] = session.notes.get(_SENT_NOTE, {})
    return any(
        key.endswith(f" {url}")
        and sent["last"] is not None
        and is_acknowledged(sent["last"])
        and session.agent_of_delivery(sent["agent"], key.partition(" ")[0]) == agent
        for key, sent in all_sent.items()
    )


def is_delivered_elsewhere(session: SessionState, task_id: str, url: str, digest: str) -> bool:
    """Whether a body was also delivered to another URL for the same task."""
    all_sent: dict[str, SentEvents] = session.notes.get(_SENT_NOTE, {})
    own = f"{task_id} {url}"
    return any(
        key != own and key.startswith(f"{task_id} ") and digest in sent["attempts"]
        for key, sent in all_sent.items()
    )


class ClosedDelivery(NamedTuple):
    """An attempt that is over."""

    attempt: Attempt
    sent: SentEvents
    key: str
    """Task and URL, separated by a space."""
    digest: str


def note_outcome(context: RuleContext) -> ClosedDelivery | None:
    """Record the end of the attempt in the exchange that is over; None if the attempt is not
    known."""
    key, digest = (context.record.notes or {}).get(_ATTEMPT_NOTE, ("", ""))
    sent: SentEvents | None = context.session.notes.get(_SENT_NOTE, {}).get(key)
    attempts = sent["attempts"].get(digest, []) if sent is not None else []
    exchange = context.exchange
    attempt = next((each for each in attempts if each["exchange"] == exchange.id), None)
    if sent is None or attempt is None:
        return None
    attempt["closed"], attempt["status"] = exchange.closed, exchange.status
    for known in (sent["last"], sent["newest"]):
        if known is not None and known["exchange"] == exchange.id:
            known["closed"] = exchange.closed
    if sent["last"] is not None and sent["last"]["exchange"] == exchange.id:
        sent["last"]["status"] = exchange.status
    return ClosedDelivery(attempt, sent, key, digest)


def is_acknowledged(attempt: Attempt) -> bool:
    """Whether the receiver answered with a status of 2xx."""
    return 200 <= attempt["status"] < 300


# --- deliveries and their configurations


class MatchedDelivery(NamedTuple):
    """A delivery with the active configurations of its task that have its URL, at least one."""

    delivery: Delivery
    receivers: list[PushReceiver]
    is_current: bool
    """Whether it is the delivery in the current frame."""


def matched_deliveries(context: RuleContext) -> Iterator[MatchedDelivery]:
    """Yield the delivery in the frame if its configuration is known; from the answer that makes a
    configuration known, the earlier deliveries for it.

    An agent may deliver events before it answers the message that created the task.
    """
    found: list[MatchedDelivery] | None = context.cache.get(_JUDGED)
    if found is None:
        found = context.cache[_JUDGED] = (
            _match_frame(context) if context.binding is Binding.WEBHOOK else _release_held(context)
        )
    yield from found


def _match_frame(context: RuleContext) -> list[MatchedDelivery]:
    delivery = read_delivery(context)
    receivers = active_receivers(context.session, delivery.task_id, delivery.url)
    if receivers:
        return [MatchedDelivery(delivery, receivers, is_current=True)]
    if not delivery.task_id or not has_open_request(context.session, delivery):
        return []
    held: dict[str, list[str]] = context.session.notes.setdefault(_HELD_NOTE, {})
    held[delivery.task_id] = [*held.pop(delivery.task_id, []), delivery.encode()][-_MAX_HELD:]
    if len(held) > _MAX_HELD_TASKS:
        del held[next(iter(held))]
    return []


def has_open_request(session: SessionState, delivery: Delivery) -> bool:
    """Whether a request without an answer may have created the task, or may have set a
    configuration for it. Assumed if very many exchanges are open.
    """
    if len(session.exchange_records) > _MAX_EXAMINED:
        return True
    task = owner_task(session, delivery.agent, delivery.task_id)
    is_known = task is not None and task.created_by
    for each in session.exchange_records.values():
        request = each.request
        named = request.task_id if request is not None else ""
        if (
            each.answers
            or each.started > delivery.started + GRACE
            or named not in ("", delivery.task_id)
        ):
            continue
        sends = each.operation in SENDING_OPERATIONS
        may_set = request is None or request.truncated or may_have_push_config(request.payload)
        if each.operation == CREATE_CONFIG or (sends and (may_set or not is_known)):
            return True
    return False


def _release_held(context: RuleContext) -> list[MatchedDelivery]:
    learn_receivers(context)
    held: dict[str, list[str]] = context.session.notes.get(_HELD_NOTE, {})
    if context.has_flag(FrameFlag.ASKS) or context.frame.task_id not in held:
        return []
    found, kept = [], []
    for text in held.pop(context.frame.task_id):
        delivery = decode_delivery(text)
        known = active_receivers(context.session, delivery.task_id, delivery.url)
        if any(
            each["exchange"] == context.record.id and each["since"] <= delivery.started
            for each in known
        ):
            found.append(MatchedDelivery(delivery, known, is_current=False))
        else:
            kept.append(text)
    if kept:
        held[context.frame.task_id] = kept
    return found
