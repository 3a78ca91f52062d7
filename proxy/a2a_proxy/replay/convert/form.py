"""Objects of the 1.0 JSON form as another form has them: what `protocol.canonical.Canonical` makes, the other way.

Every method takes the members it knows and passes the others on.
"""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]

FILE_MEMBERS = ("raw", "url", "filename", "mediaType")
"""Of a part that is a file, besides those that every part may have."""


class DialectForm(Protocol):
    """How one dialect writes the objects of 1.0."""

    def task(self, value: Json) -> Json:
        """A task."""

    def message(self, value: Json) -> Json:
        """A message."""

    def event(self, value: Json) -> Json:
        """One event of a stream or one answer to a send, wrapped as in 1.0: `{"statusUpdate": {...}}`."""

    def push_config(self, value: Json) -> Json:
        """A push configuration that stands by itself, with its task."""

    def push_member(self, value: Json) -> Json:
        """The configuration alone, as a send carries it."""


class NewForm:
    """1.0, 1.1 and what is wrapped like them: the canonical form itself."""

    def task(self, value: Json) -> Json:
        """As it is."""
        return value

    def message(self, value: Json) -> Json:
        """As it is."""
        return value

    def event(self, value: Json) -> Json:
        """As it is."""
        return value

    def push_config(self, value: Json) -> Json:
        """As it is."""
        return value

    def push_member(self, value: Json) -> Json:
        """As it is."""
        return value


def split_push_config(value: Json) -> tuple[str, Json]:
    """The task's id, and the configuration without it, its authentication as before 1.0."""
    inner = without_members(value, "taskId", "tenant")
    if isinstance(inner.get("authentication"), dict):
        inner["authentication"] = convert_authentication(inner["authentication"])
    return str(value.get("taskId", "")), inner


def convert_authentication(value: Json) -> Json:
    """`scheme` was the first of `schemes`."""
    if "scheme" not in value:
        return value
    return {"schemes": value.get("schemes", [value["scheme"]]), **without_members(value, "scheme", "schemes")}


def convert_each(value: Json, name: str, shape: Any) -> Json:
    """The same with `shape` applied to every object in the list `name`; without it where it is not there."""
    found = value.get(name)
    if not isinstance(found, list):
        return {name: found} if name in value else {}
    return {name: [shape(one) if isinstance(one, dict) else one for one in found]}


def without_members(value: Json, *names: str) -> Json:
    """A copy without these members."""
    return {name: item for name, item in value.items() if name not in names}
