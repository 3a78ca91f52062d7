"""A2UI: user interfaces that an agent describes, and what the user does with them (versions 0.8 to
1.0)."""

from typing import Any

from a2a_proxy.protocol.extensions.extension import Extension, ExtensionPayload, Place
from a2a_proxy.protocol.extensions.members import (
    count,
    list_member,
    list_names,
    malformed,
    text_member,
)

_BY_THE_AGENT = {
    *("beginRendering", "surfaceUpdate", "dataModelUpdate", "deleteSurface"),
    *(
        "createSurface",
        "updateComponents",
        "updateDataModel",
        "callRendererFunction",
        "agentFunctionResponse",
    ),
}
_BY_THE_USER = {"userAction", "action", "error", "callAgentFunction", "rendererFunctionResponse"}
_MESSAGES = _BY_THE_AGENT | _BY_THE_USER


def _summarise(payload: ExtensionPayload) -> str | None:
    if payload.place is Place.DATA:
        return _describe_messages(payload.value)
    if payload.place is Place.CARD:
        return _describe_catalogs(payload.value)
    if not isinstance(payload.value, dict):
        return malformed(f"{payload.key} is not an object")
    if payload.key.endswith("DataModel"):
        surfaces = payload.value.get("surfaces", payload.value)
        return (
            f"data model of {count(len(surfaces) if isinstance(surfaces, dict) else 0, 'surface')}"
        )
    versions = {name: each for name, each in payload.value.items() if isinstance(each, dict)}
    told = [f"{name}: {_describe_catalogs(each)}" for name, each in versions.items()]
    return (
        f"capabilities {list_names(told)}"
        if told
        else f"capabilities: {_describe_catalogs(payload.value)}"
    )


def _describe_catalogs(value: Any) -> str:
    inline = isinstance(value, dict) and (
        value.get("acceptsInlineCatalogs") is True or value.get("inlineCatalogs")
    )
    catalogs = count(len(list_member(value, "supportedCatalogIds")), "catalog")
    return f"{catalogs} and inline ones" if inline else catalogs


def _describe_messages(value: Any) -> str:
    messages = value if isinstance(value, list) else [value]
    return list_names([_describe_message(each) for each in messages]) if messages else "no messages"


def _describe_message(message: Any) -> str:
    if not isinstance(message, dict):
        return malformed("a message is not an object")
    name = next((each for each in message if each in _MESSAGES), "")
    if not name:
        return "unknown message"
    content = message[name]
    if not isinstance(content, dict):
        return malformed(f"{name} is not an object")
    words = [name, text_member(content, "surfaceId"), text_member(content, "name", "path", "code")]
    components = content.get("components")
    if isinstance(components, list):
        words.append(f"({count(len(components), 'component')})")
    return " ".join(word for word in words if word)


A2UI = Extension(
    name="A2UI",
    uris=("https://a2ui.org/",),
    metadata=("a2ui",),
    media_types=("application/json+a2ui", "application/a2ui+json"),
    summarise=_summarise,
)
"""The media type of version 0.8 is the first one."""
