"""The extensions that a message uses: found by URI, by name, and by media type. Accepts any
JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import FrameKind
from a2a_proxy.protocol.extensions.extension import Extension, ExtensionPayload, Place
from a2a_proxy.protocol.extensions.members import list_member, object_member, text_member
from a2a_proxy.protocol.extensions.registry import REGISTRY, Registry
from a2a_proxy.protocol.text import to_one_line

EXTENSIBLE_KINDS = frozenset({FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT})
"""Kinds of frames whose payload can use extensions."""
MAX_USES = 32
"""Maximum number of uses that are reported for a message."""
_MAX_WORDS = 140
"""Maximum number of characters of the words of a use."""
_MAX_ENTRIES = 256
"""Maximum number of parts, artifacts and members of an object that are looked at."""


class ExtensionUse(msgspec.Struct, frozen=True):
    """An extension in a message."""

    name: str
    place: str
    """A path in the message in 1.0 form: `message.parts[0].data`."""
    words: str
    """The content; empty if its presence says all."""

    def __str__(self) -> str:
        return f"{self.name}: {self.words}" if self.words else self.name


def find_extensions(
    value: Any, requested: str = "", registry: Registry = REGISTRY
) -> list[ExtensionUse]:
    """Return the uses in a request, answer or event in 1.0 form, or in an agent card; never raises.

    `requested` has the URIs that the call names in its header.
    """
    found: list[ExtensionUse] = []
    for use in _find_uses(value, requested, registry):
        found.append(use)
        if len(found) == MAX_USES:
            break
    return found


def _find_uses(value: Any, requested: str, registry: Registry) -> Iterator[ExtensionUse]:
    if not isinstance(value, dict):
        return
    for path, holder in _holders(value):
        asked = requested + " ".join(
            each for each in list_member(holder, "extensions") if isinstance(each, str)
        )
        around = object_member(holder, "metadata")
        for key, content in _some(around):
            payload = ExtensionPayload(Place.METADATA, key, content, around)
            yield from _use(f"{path}metadata", payload, _by_metadata(registry, key))
        for number, part in enumerate(list_member(holder, "parts")[:_MAX_ENTRIES]):
            if isinstance(part, dict) and "data" in part:
                yield from _find_in_data(
                    f"{path}parts[{number}].data", part, around, asked, registry
                )
    for number, declared in enumerate(
        list_member(object_member(value, "capabilities"), "extensions")[:_MAX_ENTRIES]
    ):
        uri = text_member(declared, "uri")
        extension = registry.find_uri(uri)
        if extension is not None:
            payload = ExtensionPayload(Place.CARD, uri, declared.get("params"), {})
            yield from _use(f"capabilities.extensions[{number}]", payload, iter((extension,)))


def _holders(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects that can carry an extension, each with its path and a dot; not the history
    of a task."""
    update, artifact = object_member(value, "statusUpdate"), object_member(value, "artifactUpdate")
    task = object_member(value, "task")
    yield "", value
    yield "message.", object_member(value, "message")
    yield "messageUpdate.message.", object_member(object_member(value, "messageUpdate"), "message")
    yield "statusUpdate.", update
    yield "statusUpdate.status.message.", object_member(object_member(update, "status"), "message")
    yield "artifactUpdate.", artifact
    yield "artifactUpdate.artifact.", object_member(artifact, "artifact")
    yield "task.", task
    yield "task.status.message.", object_member(object_member(task, "status"), "message")
    for number, each in enumerate(list_member(task, "artifacts")[:_MAX_ENTRIES]):
        if isinstance(each, dict):
            yield f"task.artifacts[{number}].", each


def _some(members: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(members.items())[:_MAX_ENTRIES] if members else []


def _find_in_data(
    path: str, part: dict[str, Any], around: dict[str, Any], asked: str, registry: Registry
) -> Iterator[ExtensionUse]:
    own = object_member(part, "metadata")
    media = text_member(part, "mediaType", "mimeType") or text_member(
        own, "mimeType", "mediaType", "mime_type"
    )
    if media:
        bare = media.partition(";")[0].strip().lower()
        payload = ExtensionPayload(Place.DATA, bare, part["data"], around)
        yield from _use(
            path, payload, (each for each in registry.extensions if bare in each.media_types)
        )
    for key, content in _some(part["data"] if isinstance(part["data"], dict) else {}):
        payload = ExtensionPayload(Place.DATA, key, content, around)
        yield from _use(path, payload, _by_member(registry, key, asked))
    for key, content in _some(own):
        payload = ExtensionPayload(Place.METADATA, key, content, own)
        yield from _use(
            f"{path.removesuffix('data')}metadata", payload, _by_metadata(registry, key)
        )


def _by_metadata(registry: Registry, key: str) -> Iterator[Extension]:
    address = f"https://{key.removeprefix('https://').removeprefix('http://')}"
    return (
        each
        for each in registry.extensions
        if address.startswith(each.uris) or key.startswith(each.metadata)
    )


def _by_member(registry: Registry, key: str, asked: str) -> Iterator[Extension]:
    for each in registry.extensions:
        if key.startswith(each.members) and (
            not each.needs_uri or any(uri in asked for uri in each.uris)
        ):
            yield each


def _use(
    path: str, payload: ExtensionPayload, candidates: Iterator[Extension]
) -> Iterator[ExtensionUse]:
    """Yield the use by the first extension whose content it is."""
    for extension in candidates:
        try:
            words = extension.summarise(payload)
        except Exception as failure:  # a plug-in must not stop a screen
            words = f"not readable: {type(failure).__name__}: {failure}"
        if words is not None:
            yield ExtensionUse(extension.name, path, to_one_line(str(words), _MAX_WORDS))
            return
