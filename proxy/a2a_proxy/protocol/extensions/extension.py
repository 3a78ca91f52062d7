"""The description of an extension: its URIs, its places in a message, and the function that
describes its content."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec


class Place(StrEnum):
    """A place for the content of an extension."""

    METADATA = "metadata"
    """A member of the metadata of a request, message, artifact, task or update."""
    DATA = "data"
    """A data part, or a member of its object."""
    CARD = "card"
    """The parameters of its declaration in an agent card."""


class ExtensionPayload(msgspec.Struct, frozen=True):
    """Content of an extension, as its peer wrote it: every type is possible everywhere."""

    place: Place
    key: str
    """Name of the member; the media type of a data part that was found by it; the URI in a card."""
    value: Any
    """Value of the member; the whole data of a part that was found by its media type; parameters in
    a card."""
    metadata: dict[str, Any]
    """Metadata of the object around it; empty if it has none."""


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """An extension that is known by name."""

    name: str
    """A short name for people."""
    uris: tuple[str, ...]
    """Beginnings of its URIs. A metadata key that begins with one, with or without `https://`,
    belongs to it too."""
    metadata: tuple[str, ...] = ()
    """Beginnings of other metadata keys."""
    members: tuple[str, ...] = ()
    """Beginnings of the names of members in the object of a data part."""
    media_types: tuple[str, ...] = ()
    """Media types of its data parts."""
    needs_uri: bool = False
    """Whether its members have such common names that they count only in a call or an object that
    names its URI."""
    summarise: Callable[[ExtensionPayload], str | None]
    """Returns the content in a few words, the empty string if its presence says all, or None if the
    content is not of this extension. What it raises is shown in place of the words."""
