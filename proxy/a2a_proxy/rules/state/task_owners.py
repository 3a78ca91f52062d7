"""The creator of a task, identified by the credentials of the call that created it."""

import hashlib
import re
from functools import lru_cache
from typing import Any

from a2a_proxy.model.values import Binding, Frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import decoder_for, is_protobuf
from a2a_proxy.protocol.status_summary import DECODE_ERRORS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.state.records import TaskRecord

_OWNER_NOTE, _SCOPE_NOTE = "owner", "scope"
_USER_FIELD = re.compile(
    r"user(?!-agent)|tenant|account|organi[sz]ation|org-|customer|client-id|subject|identity|email"
    r"|session|workspace|project|principal|cookie"
)
"""Names of header fields, in lower case, that may say for whom a call is made."""


def note_owner(context: RuleContext) -> None:
    """Remember the owner and the scope of the task if this exchange created it."""
    task = context.task
    if task is None or task.created_by != context.record.id or _OWNER_NOTE in context.cache:
        return
    context.cache[_OWNER_NOTE] = True  # several rules call this
    for name, value in (
        (_OWNER_NOTE, principal_digest(context.exchange)),
        (_SCOPE_NOTE, scope_of_call(context)),
    ):
        if value:
            task.writable_notes()[name] = value


def owner_of(task: TaskRecord) -> str:
    """Return the owner as a `principal_digest`; empty if the call had no credentials or was not
    recorded (`created_by` is 0).
    """
    owner: str = (task.notes or {}).get(_OWNER_NOTE, "")
    return owner


def scope_of(task: TaskRecord) -> str:
    """Return the `scope_of_call` of the call that created the task."""
    scope: str = (task.notes or {}).get(_SCOPE_NOTE, "")
    return scope


def scope_of_call(context: RuleContext) -> str:
    """Return a digest of what besides credentials may decide which tasks a caller sees: the tenant,
    cookies, and fields that a gateway adds for a user. Empty if the call has none of them."""
    fields = context.exchange.request_headers
    names = _user_fields(tuple([name for name, _ in fields]))
    found = sorted(f"{name!r} {value!r}" for name, value in fields if name in names)
    tenant = tenant_of_call(context)
    if not (found or tenant):
        return ""
    return hashlib.sha256("\n".join([*found, tenant]).encode()).hexdigest()[:16]


def tenant_of_call(context: RuleContext) -> str:
    """Return the tenant that a call names, in its parameters or in its path. If the card does not
    tell which part of the path is the tenant, it is the whole part before the operation."""
    asked = context.request
    tenant = named_tenant(context, asked) if asked is not None else ""
    if tenant or context.binding is not Binding.REST:
        return tenant
    path, facts, agent = context.rest_match, context.session.facts, context.record.agent
    if path is None or not facts.get_card(agent).interfaces:
        return path.prefix if path is not None else ""
    return facts.tenant_of(agent, path.prefix)


def named_tenant(context: RuleContext, request: Frame) -> str:
    """Return the tenant that a request of this call names in its parameters or in the query of its
    path, or an empty string."""
    found: Any = ""
    try:
        if is_protobuf(request.schema):
            found = getattr(decoder_for(request.schema).parse(request.payload), "tenant", "")
        elif b'"tenant"' in request.payload:
            found = decode_payload(request.payload, request.schema)
            for name in ("params", "tenant") if context.is_enveloped else ("tenant",):
                found = found.get(name) if isinstance(found, dict) else None
    except DECODE_ERRORS:
        pass
    if not found and context.rest_match is not None:
        found = context.rest_match.get_parameter("tenant")
    return found if isinstance(found, str) else ""


@lru_cache(1024)
def _user_fields(names: tuple[bytes, ...]) -> frozenset[bytes]:
    """Return the names of fields that may say for whom a call is made. Cached because clients
    repeat the same names."""
    return frozenset(each for each in names if _USER_FIELD.search(each.decode("latin-1").lower()))
