"""Which line a body is written in, by its own evidence (manual/protocol.md "Dialects"), and which one the call asked
for."""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Dialect, Exchange
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.define.rule import ENVELOPE
from a2a_proxy.rules.schema.shape import Family
from a2a_proxy.rules.schema.walk import EVENTS_0_3

_NEW = (Dialect.V1_0, Dialect.V1_1)
_OLD = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)
_OLDEST = (Dialect.V0_1, Dialect.VENDOR)
_WRAPPERS = ("task", "message", "statusUpdate", "artifactUpdate")


def asked_by(exchange: Exchange, params: Any) -> Family | None:
    """The line in which the client speaks; None where nothing tells. `params`: what its request wraps."""
    body, said = by_request(params), dialect_of_version(exchange.version_header)
    if exchange.binding in ENVELOPE:
        return _by_method(exchange, body, said)
    if exchange.dialect is Dialect.UNKNOWN:
        return None
    if exchange.dialect in _NEW:
        return Family.NEW
    if exchange.dialect is Dialect.RC:
        return Family.CANDIDATE
    return body if body is Family.OLD else Family.OLDEST if exchange.dialect in _OLDEST else Family.OLD_PROTO


def _by_method(exchange: Exchange, body: Family | None, said: Dialect) -> Family:
    """The method says it, unless version and body agree on something else."""
    if "/" not in exchange.method:
        if said in _OLD and body in (Family.OLD, Family.OLDEST):
            return body
        return Family.CANDIDATE if exchange.dialect is Dialect.RC else Family.NEW
    if said in _NEW and body is Family.NEW:
        return Family.NEW
    return Family.OLDEST if exchange.dialect in _OLDEST or body is Family.OLDEST else Family.OLD


def by_request(params: Any) -> Family | None:
    """The parameters of a send: part discriminator, spelling of the role, `kind`."""
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict):
        return None
    parts = message.get("parts")
    part = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else {}
    role = message.get("role")
    if isinstance(role, str) and role.startswith("ROLE_"):
        return Family.NEW
    if "type" in part:
        return Family.OLDEST
    return Family.OLD if "kind" in part or "kind" in message else None


def by_answer(value: Any) -> Family | None:
    """An answer or event: a wrapper of 1.0, or `kind`."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("kind"), str) and value["kind"] in EVENTS_0_3:
        return Family.OLD
    return Family.NEW if any(isinstance(value.get(name), dict) for name in _WRAPPERS) and not _bare(value) else None


def _bare(value: dict[str, Any]) -> bool:
    """A status has a message too, and an update of 0.1 an id."""
    return "id" in value or "status" in value


def foreign(exchange: Exchange, asked: Family | None, value: Any) -> Family | None:
    """The line of an answer, where it is another one than the client's."""
    answered = by_answer(value)
    if answered is None or asked is None:
        return None
    if exchange.binding in ENVELOPE:
        old = asked in (Family.OLD, Family.OLDEST)
        return answered if old == (answered is Family.NEW) and asked is not Family.CANDIDATE else None
    said = dialect_of_version(exchange.version_header)
    return answered if said in _NEW and answered is Family.OLD else None
