"""The members of a card that have another form in 1.0, with that form (A2A 1.0 appendix A.2)."""

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.values import Actor, Finding, Severity
from a2a_proxy.present.text import format_count
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.security_schemes import SCHEME_WRAPPERS
from a2a_proxy.protocol.session_facts import card_facts
from a2a_proxy.rules.state.card_declarations import (
    Json,
    indexed_objects,
    is_v1,
    object_member,
    string_member,
)

_INTERFACE_MEMBERS = {
    "protocolVersion": "supportedInterfaces[].protocolVersion",
    "url": "supportedInterfaces[].url",
    "preferredTransport": "supportedInterfaces[].protocolBinding",
    "additionalInterfaces": "supportedInterfaces[]` with `protocolBinding` for `transport",
}
_REQUIREMENT_FORM = 'securityRequirements`, each entry as `{"schemes": {NAME: {"list": [SCOPE]}}}'


class _OldMember(msgspec.Struct, frozen=True):
    path: str
    form: str
    """The form in 1.0; empty if 1.0 has none."""
    has_new: bool = True
    """Whether the card has the 1.0 form too."""
    version: str = ""
    """The version of the old form; empty for that of the card."""
    count: int = 1
    noun: str = ""


def migration_findings(card: Json, now: int) -> list[Finding]:
    """Return a finding for each member in an older form; a warning if a card for 1.0 clients lacks
    the 1.0 form.

    `now` is the time of the findings in ns.
    """
    mixed = is_v1(card)
    version = "0.3" if mixed else str(dialect_of_version(card_facts(card).version)) or "0.3"
    return [
        Finding(
            "MIGRATION",
            Severity.WARNING if mixed and each.form and not each.has_new else Severity.INFO,
            now,
            _summary_of(each, each.version or version, mixed),
            evidence={"path": each.path, "actor": Actor.AGENT.value},
        )
        for each in _old_members(card)
    ]


def _summary_of(member: _OldMember, version: str, mixed: bool) -> str:
    many = f" ({format_count(member.count, member.noun)})" if member.count > 1 else ""
    if not member.form:
        return f"`{member.path}` is a member of {version} that 1.0 does not have"
    named = f"`{member.path}`{many} is the {version} form"
    if not mixed:
        return f"{named}; in 1.0: `{member.form}`"
    has = "the card also has" if member.has_new else "the card lacks"
    return f"{named}, which 1.0 clients ignore; {has} `{member.form}`"


def _old_members(card: Json) -> Iterator[_OldMember]:
    """Yield the members in the form of 0.3, in the order of this module."""
    interfaces = bool(indexed_objects(card.get("supportedInterfaces")))
    yield from (
        _OldMember(name, form, interfaces)
        for name, form in _INTERFACE_MEMBERS.items()
        if name in card
    )
    capabilities = object_member(card, "capabilities")
    old = card.get("supportsAuthenticatedExtendedCard")
    if old is not None:
        new = old is not True or "extendedAgentCard" in capabilities
        yield _OldMember("supportsAuthenticatedExtendedCard", "capabilities.extendedAgentCard", new)
    if "stateTransitionHistory" in capabilities:
        yield _OldMember("capabilities.stateTransitionHistory", "")
    if "authentication" in card:
        form = "securitySchemes` and `securityRequirements"
        yield _OldMember("authentication", form, "securityRequirements" in card, "0.1")
    yield from _old_schemes(card)
    if card.get("security"):
        yield _OldMember("security", _REQUIREMENT_FORM, "securityRequirements" in card)
    skills = [
        (index, skill)
        for index, skill in indexed_objects(card.get("skills"))
        if skill.get("security")
    ]
    if skills:
        has_new = all("securityRequirements" in skill for _, skill in skills)
        path, form = f"skills[{skills[0][0]}].security", f"skills[].{_REQUIREMENT_FORM}"
        yield _OldMember(path, form, has_new, count=len(skills), noun="skill")


def _old_schemes(card: Json) -> Iterator[_OldMember]:
    """Yield one member for each type of security scheme."""
    by_type: dict[str, list[tuple[str, Json]]] = {}
    for name, scheme in object_member(card, "securitySchemes").items():
        if isinstance(scheme, dict) and (kind := string_member(scheme, "type")) in SCHEME_WRAPPERS:
            by_type.setdefault(kind, []).append((name, scheme))
    for kind, schemes in by_type.items():
        wrapper = SCHEME_WRAPPERS[kind]
        form = f"securitySchemes.*.{wrapper}" + (
            "` with `location` for `in" if kind == "apiKey" else ""
        )
        has_new = all(wrapper in scheme for _, scheme in schemes)
        yield _OldMember(
            f"securitySchemes.{schemes[0][0]}.type",
            form,
            has_new,
            count=len(schemes),
            noun="scheme",
        )
