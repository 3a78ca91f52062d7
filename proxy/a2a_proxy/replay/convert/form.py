"""Conversion of 1.0 JSON objects into another form, the inverse of `protocol.canonical.Canonical`.

Every method converts the members it knows and copies the others.
"""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]

FILE_MEMBERS = ("raw", "url", "filename", "mediaType")
"""Members of a file part, besides those of every part."""


class DialectForm(Protocol):
    """How one dialect writes the objects of 1.0."""

    def convert_task(self, value: Json) -> Json:
        """Convert a task."""

    def convert_message(self, value: Json) -> Json:
        """Convert a message."""

    def convert_event(self, value: Json) -> Json:
        """Convert one event of a stream or one answer to a send, wrapped as in 1.0: `{"statusUpdate": {...}}`."""

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration on its own, with its task."""

    def convert_push_member(self, value: Json) -> Json:
        """Convert the configuration alone, as a send carries it."""


class NewForm:
    """The canonical form itself, for 1.0, 1.1 and dialects wrapped like them."""

    def convert_task(self, value: Json) -> Json:
        """Return the task unchanged."""
        return value

    def convert_message(self, value: Json) -> Json:
        """Return the message unchanged."""
        return value

    def convert_event(self, value: Json) -> Json:
        """Return the event unchanged."""
        return value

    def convert_push_config(self, value: Json) -> Json:
        """Return the configuration unchanged."""
        return value

    def convert_push_member(self, value: Json) -> Json:
        """Return the configuration unchanged."""
        return value


def split_push_config(value: Json) -> tuple[str, Json]:
    """Return the task id, and the configuration without it, with its authentication as before 1.0."""
    inner = without_members(value, "taskId", "tenant")
    if isinstance(inner.get("authentication"), dict):
        inner["authentication"] = convert_authentication(inner["authentication"])
    return str(value.get("taskId", "")), inner


def convert_authentication(value: Json) -> Json:
    """Convert `scheme` to `schemes`, a list of one."""
    if "scheme" not in value:
        return value
    return {"schemes": value.get("schemes", [value["scheme"]]), **without_members(value, "scheme", "schemes")}


def convert_each(value: Json, name: str, shape: Any) -> Json:
    """Apply `shape` to every object in the list `name`; return only that member, or nothing if it is absent."""
    found = value.get(name)
    if not isinstance(found, list):
        return {name: found} if name in value else {}
    return {name: [shape(one) if isinstance(one, dict) else one for one in found]}


def without_members(value: Json, *names: str) -> Json:
    """Return a copy without these members."""
    return {name: item for name, item in value.items() if name not in names}
