"""Answers of an agent, from canonical form to that of a binding and dialect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.canonical import Json
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.replay.convert.card import convert_card
from a2a_proxy.replay.convert.form import DialectForm
from a2a_proxy.replay.convert.old_json import OldJson
from a2a_proxy.replay.convert.old_proto import OldProto

OLD_DIALECTS = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})
"""Dialects whose JSON differs from 1.0."""
_RPC_BINDINGS = (Binding.JSONRPC, Binding.STDIO)


def form_of(dialect: Dialect, binding: Binding) -> DialectForm:
    """Return the form of a dialect on a binding: before 1.0 REST and gRPC carry the protobuf
    form."""
    if dialect not in OLD_DIALECTS:
        return DialectForm()
    return OldJson(dialect) if binding in (*_RPC_BINDINGS, Binding.WEBHOOK) else OldProto()


def convert_answer(value: Any, operation: str, dialect: Dialect, binding: Binding) -> Any:
    """Convert one event or answer to plain JSON of the dialect: the `result` of JSON-RPC, the body
    of REST, ProtoJSON."""
    if not isinstance(value, dict):
        return value
    form, row = form_of(dialect, binding), OPERATION_BY_NAME.get(operation)
    expected = row.answer if row is not None else ResponseKind.STREAM
    if expected is ResponseKind.TASK:
        return form.convert("Task", value["task"]) if isinstance(value.get("task"), dict) else value
    if expected is ResponseKind.TASKS:
        return _convert_list(value, "tasks", partial(form.convert, "Task"))
    if expected is ResponseKind.PUSH_CONFIG:
        return form.convert_push_config(value)
    if expected is ResponseKind.PUSH_CONFIGS:
        converted = _convert_list(value, "configs", form.convert_push_config)
        return (
            converted.get("configs", [])
            if dialect in OLD_DIALECTS and binding in _RPC_BINDINGS
            else converted
        )
    if expected is ResponseKind.CARD:
        return convert_card(value, binding)
    if expected is ResponseKind.EMPTY:
        return None if binding in _RPC_BINDINGS and dialect in OLD_DIALECTS else value
    return form.convert_event(value)


def _convert_list(value: Json, name: str, convert: Callable[[Json], Json]) -> Json:
    """Convert the objects in one member of an answer, a list."""
    found = value.get(name)
    if not isinstance(found, list):
        return value
    return {**value, name: [convert(each) if isinstance(each, dict) else each for each in found]}


def convert_notification(value: Json, dialect: Dialect) -> Json:
    """Convert the body of a webhook."""
    return form_of(dialect, Binding.WEBHOOK).convert_event(value)
