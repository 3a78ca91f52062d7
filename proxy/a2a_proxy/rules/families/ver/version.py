"""Versions as numbers, and the versions that a card declares."""

import re
from functools import lru_cache

from a2a_proxy.model.values import CARD_BINDINGS, Dialect
from a2a_proxy.rules.context import RuleContext

NEW_DIALECTS = (Dialect.V1_0, Dialect.V1_1)
OLD_DIALECTS = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)

_VERSION_PATTERN = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


@lru_cache(256)
def parse_version(text: str) -> tuple[int, int] | None:
    """Return the major and minor number, or None if the text is not a version."""
    found = _VERSION_PATTERN.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found is not None else None


def parse_declared_version(text: str) -> tuple[int, int] | None:
    """Return the same of a card's version, which may have a patch number."""
    return parse_version(".".join(text.split(".")[:2]))


def declared_versions(context: RuleContext, *, for_binding: bool = False) -> set[tuple[int, int]]:
    """Return the versions that the agent's card declared before the request; with `for_binding`
    only versions of the exchange's binding.

    Empty if no card was recorded, or if the card does not declare its interfaces in the form of
    1.0.
    """
    agent = context.agent
    if agent.card is None or agent.card_at >= context.exchange.started:
        return set()
    interfaces = agent.card.get("supportedInterfaces")
    found: set[tuple[int, int]] = set()
    for each in interfaces if isinstance(interfaces, list) else ():
        if not isinstance(each, dict) or (
            for_binding and each.get("protocolBinding") != CARD_BINDINGS.get(context.binding)
        ):
            continue
        version = parse_declared_version(str(each.get("protocolVersion", "")))
        if version is not None:
            found.add(version)
    return found
