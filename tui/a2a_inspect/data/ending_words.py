"""An ending in words, for the command `why`, the screen and reports."""

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.ending import Ending


def ending_facts(ending: Ending) -> dict[str, str]:
    """Return what is known of an ending, by name, without what is unknown."""
    title = all_rules()[ending.rule].title
    facts = {
        "cause": f"{ending.cause}: {title} ({ending.rule}, {ending_level(ending)})",
        "received": ending.received,
        "ended by": ending.ended_by,
        "agent": ending.agent_did,
        "must act": ending.actor.value if ending.severity is not None and ending.actor else "",
        "may be": ", or ".join(ending.remaining),
        "decides": ending.decides,
        "next": ending.next_step,
        "command": ending.command,
        "confidence": ending.confidence,
    }
    return {name: make_visible(value) for name, value in facts.items() if value}


def ending_level(ending: Ending) -> str:
    """Return the severity, or `no failure`."""
    return ending.severity.name.lower() if ending.severity is not None else "no failure"
