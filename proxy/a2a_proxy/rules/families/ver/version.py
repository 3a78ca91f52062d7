"""Versions as numbers, and those that a card declares."""

from __future__ import annotations

import re
from functools import lru_cache

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.rules.context import RuleContext

NEW = (Dialect.V1_0, Dialect.V1_1)
OLD = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_BINDINGS = {Binding.JSONRPC: "JSONRPC", Binding.REST: "HTTP+JSON", Binding.GRPC: "GRPC"}


@lru_cache(256)
def said_version(text: str) -> tuple[int, int] | None:
    """Major and minor; None where it is no version."""
    found = _VERSION.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found is not None else None


def declared(see: RuleContext, *, here: bool = False) -> set[tuple[int, int]]:
    """Versions that the agent's card declared before the request; with `here` those of this binding only.

    Empty where no card was seen, or where it does not declare its interfaces as 1.0 does.
    """
    agent = see.agent
    if agent.card is None or agent.card_at >= see.exchange.started:
        return set()
    interfaces = agent.card.get("supportedInterfaces")
    found: set[tuple[int, int]] = set()
    for each in interfaces if isinstance(interfaces, list) else ():
        if not isinstance(each, dict) or (here and each.get("protocolBinding") != _BINDINGS.get(see.binding)):
            continue
        version = said_version(".".join(str(each.get("protocolVersion", "")).split(".")[:2]))
        if version is not None:
            found.add(version)
    return found
