"""Rules about required members of a card and their consistency (A2A 1.0 sections 4.4.1, 4.4.5)."""

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, RPC, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import card
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.state.card_declarations import (
    Json,
    indexed_objects,
    is_v1,
    object_member,
    read_requirements,
    string_items,
    string_member,
)

_MODE_MEMBERS = ("defaultInputModes", "defaultOutputModes")
_CARD_MEMBERS_1_0 = (
    "name",
    "description",
    "supportedInterfaces",
    "version",
    "capabilities",
    *_MODE_MEMBERS,
    "skills",
)
_CARD_MEMBERS_0_3 = (
    "protocolVersion",
    "name",
    "description",
    "url",
    "version",
    "capabilities",
    *_MODE_MEMBERS,
    "skills",
)
_CARD_MEMBERS_0_2 = (
    "name",
    "description",
    "url",
    "version",
    "capabilities",
    *_MODE_MEMBERS,
    "skills",
)
_CARD_MEMBERS_0_1 = ("name", "url", "version", "capabilities", "skills")
_SKILL_MEMBERS = ("id", "name", "description", "tags")
_SKILL_MEMBERS_0_1 = ("id", "name")
_MEDIA_TYPE = re.compile(r"(\*|[\w!#$&^.+-]+)/(\*|[\w!#$&^.+-]+)\s*(;.*)?")


def _required_members(found: Json) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the card's protocol version and the members required of the card and of its skills."""
    if is_v1(found):
        return "1.0", _CARD_MEMBERS_1_0, _SKILL_MEMBERS
    if "authentication" in found:
        return "0.1", _CARD_MEMBERS_0_1, _SKILL_MEMBERS_0_1
    if (
        "protocolVersion" in found
        or "preferredTransport" in found
        or "additionalInterfaces" in found
    ):
        return "0.3", _CARD_MEMBERS_0_3, _SKILL_MEMBERS
    return "0.2", _CARD_MEMBERS_0_2, _SKILL_MEMBERS


def _is_missing(holder: Json, name: str) -> bool:
    """Whether the member is absent, null or an empty text. A description may be empty."""
    value = holder.get(name)
    return value is None or (value == "" and name != "description")


@rule(
    "A2A-CARD-003",
    "A card lacks a required member",
    Severity.ERROR,
    section="1.0 4.4.1, 4.4.5; 0.3 5.5",
    bindings=CARD,
    trigger_flags=FrameFlag.CARD | FrameFlag.OTHER,
    flagged=fetch_card(card(version=None)),
    clean=fetch_card(),
)
def required(context: RuleContext) -> Iterator[RuleFinding]:
    """An agent card, or a skill in it, lacks a member that its protocol version requires, or the
    member is empty.

    Clients decode cards into typed objects and refuse an incomplete card as a whole, so they cannot
    reach the agent although it works. The agent must add the member.
    """
    found = context.value
    if (
        not isinstance(found, dict)
        or context.exchange.status != 200
        or context.frame.kind is FrameKind.UNDECODABLE
    ):
        return
    line, members, of_skill = _required_members(found)
    for name in members:
        if _is_missing(found, name):
            yield RuleFinding(
                summary=f"the card (protocol version {line}) lacks `{name}`", path=name
            )
    for index, skill in indexed_objects(found.get("skills")):
        for name in of_skill:
            if _is_missing(skill, name):
                label = string_member(skill, "id") or string_member(skill, "name") or str(index)
                yield RuleFinding(
                    summary=f"skill {label} lacks `{name}`", path=f"skills[{index}].{name}"
                )


@rule(
    "A2A-CARD-004",
    "An entry of `supportedInterfaces` is incomplete",
    Severity.ERROR,
    section="1.0 4.4.6, 3.6",
    bindings=CARD,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        card(supportedInterfaces=[{"url": "http://localhost:8000/", "protocolBinding": "JSONRPC"}]),
    ),
    clean=fetch_card(),
)
def interface(context: RuleContext) -> Iterator[RuleFinding]:
    """An interface lacks `url`, `protocolBinding` or `protocolVersion`, or its version does not
    have the form Major.Minor. Reported as a warning if the version only has an extra patch number.

    A client selects an interface by these three members: without one of them it cannot connect, or
    falls back to the older protocol. The agent must correct its card.
    """
    for index, entry in indexed_objects(read_card(context).get("supportedInterfaces")):
        path = f"supportedInterfaces[{index}]"
        for name in ("url", "protocolBinding", "protocolVersion"):
            if _is_missing(entry, name):
                yield RuleFinding(summary=f"`{path}` lacks `{name}`", path=f"{path}.{name}")
        version = string_member(entry, "protocolVersion")
        if version and not re.fullmatch(r"\d+\.\d+", version):
            patched = re.fullmatch(r"\d+\.\d+\.\d+", version) is not None
            yield RuleFinding(
                summary=f'`protocolVersion` is "{version}", expected Major.Minor such as "1.0"',
                path=f"{path}.protocolVersion",
                value=version,
                severity=Severity.WARNING if patched else None,
            )


_API_KEY_SCHEME = {"key": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}}}


@rule(
    "A2A-CARD-014",
    "A security requirement names an undefined scheme",
    Severity.ERROR,
    section="1.0 4.4.1, 4.5; 0.3 5.5",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        card(
            securitySchemes=_API_KEY_SCHEME,
            securityRequirements=[{"schemes": {"oauth": {"list": ["read"]}}}],
        ),
    ),
    clean=fetch_card(
        card(
            securitySchemes=_API_KEY_SCHEME,
            securityRequirements=[{"schemes": {"key": {"list": []}}}],
        ),
    ),
)
def unknown_scheme(context: RuleContext) -> Iterator[RuleFinding]:
    """A security requirement of the card or of a skill (`securityRequirements`, before 1.0
    `security`) names a scheme that `securitySchemes` does not define.

    A client cannot know which credentials to obtain, so it gives up or calls without any. The agent
    must define the scheme or correct the name.
    """
    found = read_card(context)
    known = object_member(found, "securitySchemes")
    holders = [
        ("", found),
        *((f"skills[{index}].", skill) for index, skill in indexed_objects(found.get("skills"))),
    ]
    for prefix, holder in holders:
        for path, names in read_requirements(holder):
            for name in names:
                if name not in known:
                    has = ", ".join(sorted(known)) or "none"
                    yield RuleFinding(
                        summary=f"`{prefix}{path}` requires `{name}`, but "
                        f"`securitySchemes` defines "
                        f"{has}",
                        path=f"{context.root}{prefix}{path}",
                        value=name,
                    )


@rule(
    "A2A-CARD-017",
    "Two skills have the same id, or a mode is not a media type",
    Severity.WARNING,
    section="1.0 4.4.1, 4.4.5; 0.3 5.5.4",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(card(defaultInputModes=["plain text"])),
    clean=fetch_card(card(defaultInputModes=["text/plain", "image/*"])),
)
def skills_and_modes(context: RuleContext) -> Iterator[RuleFinding]:
    """Two skills have the same `id`, or an input or output mode does not have the form
    type/subtype. A bare word such as `text`, an old habit, is reported as information and is not
    checked in a 0.1 card.

    Clients select skills by id and compare modes with the media types of parts; neither works here.
    The agent must correct its card.
    """
    found = read_card(context)
    seen: set[str] = set()
    for index, skill in indexed_objects(found.get("skills")):
        ident = string_member(skill, "id")
        if ident and ident in seen:
            path = f"{context.root}skills[{index}].id"
            yield RuleFinding(summary=f'two skills have the id "{ident}"', path=path, value=ident)
        seen.add(ident)
        yield from _check_modes(context, skill, f"skills[{index}].", ("inputModes", "outputModes"))
    if _required_members(found)[0] != "0.1":
        yield from _check_modes(context, found, "", _MODE_MEMBERS)


def _check_modes(
    context: RuleContext, holder: dict[str, Any], prefix: str, names: tuple[str, ...]
) -> Iterator[RuleFinding]:
    for name in names:
        for mode in string_items(holder.get(name)):
            if not _MEDIA_TYPE.fullmatch(mode):
                yield RuleFinding(
                    summary=f'the mode "{mode[:60]}" in `{prefix}{name}` is not a media type',
                    path=f"{context.root}{prefix}{name}",
                    value=mode,
                    severity=Severity.INFO if mode.isalpha() else None,
                )
