"""Conversion of 1.0 JSON objects into another form, the inverse of
`protocol.canonical.CanonicalForm`.

Which members hold which objects is read from the shapes of 1.0, as there. A form has only its
differences.
"""

from a2a_proxy.protocol.canonical import Json, convert_nested, without_members


class DialectForm:
    """1.0, 1.1 and dialects wrapped like them: every object is unchanged. The other forms derive
    from it."""

    def convert(self, shape: str, value: Json) -> Json:  # noqa: ARG002 - other forms need the shape
        """Return an object as the dialect writes it; `shape` is the name of its shape in 1.0."""
        return value

    def convert_event(self, value: Json) -> Json:
        """Convert one event of a stream or one answer to a send, wrapped as in 1.0:
        `{"statusUpdate": {...}}`."""
        return self.convert("StreamResponse", value)

    def convert_push_config(self, value: Json) -> Json:
        """Convert a push configuration on its own, with its task."""
        return value

    def convert_push_member(self, value: Json) -> Json:
        """Convert the configuration alone, as a send carries it."""
        return value


class OldForm(DialectForm):
    """A dialect before 1.0."""

    def convert(self, shape: str, value: Json) -> Json:
        """Return an object as the dialect writes it; `shape` is the name of its shape in 1.0."""
        return self._rename(shape, convert_nested(value, shape, self.convert))

    def convert_push_member(self, value: Json) -> Json:
        """Convert the configuration without a task id."""
        return split_push_config(value)[1]

    def _rename(self, shape: str, value: Json) -> Json:
        """Return an object with its own members renamed and moved; the objects inside are converted
        already."""
        raise NotImplementedError


def split_push_config(value: Json) -> tuple[str, Json]:
    """Return the task id, and the configuration without it, with its authentication as before
    1.0."""
    inner = without_members(value, "taskId", "tenant")
    if isinstance(inner.get("authentication"), dict):
        inner["authentication"] = convert_authentication(inner["authentication"])
    return str(value.get("taskId", "")), inner


def convert_authentication(value: Json) -> Json:
    """Convert `scheme` to `schemes`, a list of one."""
    if "scheme" not in value:
        return value
    return {
        "schemes": value.get("schemes", [value["scheme"]]),
        **without_members(value, "scheme", "schemes"),
    }
