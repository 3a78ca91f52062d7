"""The JSON-RPC envelope (protocol sheet 3.1, 4.2; JSON-RPC 2.0)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.talk import rpc
from a2a_proxy.rules.rule import JSONRPC, Hit, Moment, rule
from a2a_proxy.rules.see import See

_GET = {"id": "t1"}


def _envelope(see: See) -> dict[str, Any]:
    """The payload where it is an object; rules about its members have nothing to say about others."""
    return see.value if isinstance(see.value, dict) else {}


def _shown(value: object) -> str:
    return repr(value)[:60]


def _version(see: See) -> Iterator[Hit]:
    value = see.value
    if isinstance(value, dict) and value.get("jsonrpc") != "2.0" and ("method" in value or "result" in value):
        found = value.get("jsonrpc")
        told = f"`jsonrpc` is {_shown(found)}" if "jsonrpc" in value else "there is no member `jsonrpc`"
        yield Hit(summary=f'{told}, it must be "2.0"', path="jsonrpc", value=_shown(found))


@rule(
    "A2A-RPC-002",
    '`jsonrpc` is missing or is not "2.0"',
    Severity.ERROR,
    section="1.0 9.3; JSON-RPC 2.0",
    moment=Moment.REQUEST,
    bindings=JSONRPC,
    flagged=rpc("GetTask", _GET, task(), envelope={"jsonrpc": None}),
    clean=rpc("GetTask", _GET, task()),
)
def version_of_request(see: See) -> Iterator[Hit]:
    """A JSON-RPC request lacks the member `jsonrpc`, or its value is not the string "2.0".

    Libraries tell JSON-RPC 1 and 2 apart by it, and refuse the call or answer in another form.
    """
    yield from _version(see)
