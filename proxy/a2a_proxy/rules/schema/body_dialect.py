"""The dialect of a body by its own evidence (manual/protocol.md "Dialects"), and the dialect
requested by the call."""

from typing import Any

from a2a_proto.shapes.shape import Family
from a2a_proxy.model.values import EVENT_WRAPPERS, JSONRPC_BINDINGS, Dialect, Exchange
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.schema.walk import EVENTS_0_3

_NEW_DIALECTS = (Dialect.V1_0, Dialect.V1_1)
_OLD_DIALECTS = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)
_OLDEST_DIALECTS = (Dialect.V0_1, Dialect.VENDOR)


def client_dialect(exchange: Exchange, params: Any) -> Family | None:
    """Return the dialect family of the client, or None if nothing shows it. `params` is the content
    of its request."""
    body, said = params_dialect(params), dialect_of_version(exchange.version_header)
    if exchange.binding in JSONRPC_BINDINGS:
        return _method_dialect(exchange, body, said)
    if exchange.dialect is Dialect.UNKNOWN:
        return None
    if exchange.dialect in _NEW_DIALECTS:
        return Family.NEW
    return (
        body
        if body is Family.OLD
        else Family.OLDEST
        if exchange.dialect in _OLDEST_DIALECTS
        else Family.OLD_PROTO
    )


def _method_dialect(exchange: Exchange, body: Family | None, said: Dialect) -> Family:
    """Return the family shown by the method, unless version and body agree on another one."""
    if "/" not in exchange.method:
        if said in _OLD_DIALECTS and body in (Family.OLD, Family.OLDEST):
            return body
        return Family.NEW
    if said in _NEW_DIALECTS and body is Family.NEW:
        return Family.NEW
    return (
        Family.OLDEST
        if exchange.dialect in _OLDEST_DIALECTS or body is Family.OLDEST
        else Family.OLD
    )


def params_dialect(params: Any) -> Family | None:
    """Return the family of send parameters by part discriminator, spelling of the role, and
    `kind`."""
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


def answer_dialect(value: Any) -> Family | None:
    """Return the family of an answer or event: by a wrapper of 1.0, or by `kind`. None for a Task
    with `kind` and a state of 1.0, which is a mixture."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("kind"), str) and value["kind"] in EVENTS_0_3:
        return None if value["kind"] == "task" and _has_new_state(value) else Family.OLD
    return (
        Family.NEW
        if any(isinstance(value.get(name), dict) for name in EVENT_WRAPPERS.values())
        and not _is_bare_object(value)
        else None
    )


def _has_new_state(value: dict[str, Any]) -> bool:
    """Whether the task's state is written as in 1.0."""
    status = value.get("status")
    state = status.get("state") if isinstance(status, dict) else None
    return isinstance(state, str) and state.startswith("TASK_STATE_")


def _is_bare_object(value: dict[str, Any]) -> bool:
    """Whether it is an unwrapped object: a status also has a message, and an update of 0.1 an
    id."""
    return "id" in value or "status" in value


def foreign_dialect(exchange: Exchange, asked: Family | None, value: Any) -> Family | None:
    """Return the family of an answer if it differs from the client's."""
    answered = answer_dialect(value)
    if answered is None or asked is None:
        return None
    if exchange.binding in JSONRPC_BINDINGS:
        old = asked in (Family.OLD, Family.OLDEST)
        return answered if old == (answered is Family.NEW) else None
    said = dialect_of_version(exchange.version_header)
    return answered if said in _NEW_DIALECTS and answered is Family.OLD else None
