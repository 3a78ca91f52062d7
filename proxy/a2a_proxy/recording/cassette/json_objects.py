"""Conversion of values to JSON objects of a cassette, and back, by the field table.

Defaults are omitted. Times are ns relative to the start of the session. Keys are in the order of
the model's fields, after the key that names the kind of line.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.fields import Encoding, Field, fields_of
from a2a_proxy.model.values import (
    ArtifactState,
    Connection,
    Exchange,
    Finding,
    Frame,
    MissedGenerations,
    Note,
    Task,
)

Line = dict[str, Any]
_Value = TypeVar("_Value", bound=msgspec.Struct)
_Convert = Callable[[Any, int], Any]


class _Field(NamedTuple):
    name: str
    key: str
    default: Any
    write: _Convert
    read: _Convert


def _keep_value(value: Any, _: int) -> Any:
    return value


def _enum_names(kind: type[IntEnum]) -> tuple[_Convert, _Convert]:
    def write(value: Any, _: int) -> Any:
        return kind(value).name.lower()

    def read(value: Any, _: int) -> Any:
        return kind[str(value).upper()]

    return write, read


def _write_state(value: int, _: int = 0) -> Any:
    """Return the label of a state, such as `input-required`, or the number of an unknown state."""
    return TaskState(value).label if value in TaskState._value2member_map_ else value


def _read_state(value: Any, _: int = 0) -> int:
    return value if isinstance(value, int) else int(TaskState[str(value).upper().replace("-", "_")])


def _write_headers(value: Any, _: int) -> Any:
    return [[name.decode("latin-1"), text.decode("latin-1")] for name, text in value]


def _read_headers(value: Any, _: int) -> Any:
    return tuple((name.encode("latin-1"), text.encode("latin-1")) for name, text in value)


def _write_states(value: Any, start: int) -> Any:
    return [[at - start, _write_state(state)] for at, state in value]


def _read_states(value: Any, start: int) -> Any:
    return tuple((start + at, _read_state(state)) for at, state in value)


_CONVERTERS: dict[Encoding, tuple[_Convert, _Convert]] = {
    Encoding.TIME: (
        lambda at, start: at - start,
        lambda at, start: start + msgspec.convert(at, int),
    ),
    Encoding.HEADERS: (_write_headers, _read_headers),
    Encoding.STATE: (_write_state, _read_state),
    Encoding.LIST: (lambda value, _: list(value), _keep_value),
    Encoding.JSON: (lambda value, _: msgspec.to_builtins(value), _keep_value),
}


def _converters_of(field: Field) -> tuple[_Convert, _Convert]:
    kind = field.type
    if kind is bytes:
        return lambda value, _: value.hex(), lambda value, _: bytes.fromhex(value)
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return _enum_names(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _keep_value, lambda value, _: kind(value)
    return _CONVERTERS.get(field.encoding, (_keep_value, _keep_value))


def _check_type(kind: Any, write: _Convert, read: _Convert) -> tuple[_Convert, _Convert]:
    """Wrap a converter so that a value read unchanged must have the field's type."""
    return write, (lambda value, _: msgspec.convert(value, kind)) if read is _keep_value else read


def _line_fields(
    kind: type[msgspec.Struct], first: str = "", /, **converters: tuple[_Convert, _Convert]
) -> tuple[_Field, ...]:
    """Return the members of a line. `first` is the field whose key names the kind of line;
    `converters` are those that the field table does not decide."""
    fields_by_name = {
        field.name: _Field(
            field.name,
            kind.__name__.lower() if field.name == first else field.name,
            field.default,
            *_check_type(field.type, *converters.get(field.name) or _converters_of(field)),
        )
        for field in fields_of(kind)
    }
    return (
        (fields_by_name.pop(first), *fields_by_name.values())
        if first
        else tuple(fields_by_name.values())
    )


def _object_converters(kind: type[msgspec.Struct]) -> tuple[_Convert, _Convert]:
    """Return the converters of a list of objects of this kind."""
    fields = _line_fields(kind)

    def write(values: Any, start: int) -> Any:
        return [_write_fields(fields, value, start) for value in values]

    def read(lines: Any, start: int) -> Any:
        return tuple(kind(**_read_fields(fields, line, start)) for line in lines)

    return write, read


_FIELDS: dict[type[msgspec.Struct], tuple[_Field, ...]] = {
    Connection: _line_fields(Connection, "id"),
    Exchange: _line_fields(Exchange, "id"),
    Task: _line_fields(
        Task,
        "task_id",
        states=(_write_states, _read_states),
        missed=_object_converters(MissedGenerations),
        artifacts=_object_converters(ArtifactState),
    ),
    Finding: _line_fields(Finding, "rule"),
    Note: _line_fields(Note, "text"),
}
"""Members of each kind of line but a frame's."""
_FRAME_FIELDS = tuple(
    field for field in _line_fields(Frame, "kind") if field.name not in ("payload", "size")
)

MEMBER_NAMES = {
    **{kind.__name__.lower(): tuple(f.key for f in fields) for kind, fields in _FIELDS.items()},
    "frame": (
        *(field.key for field in _FRAME_FIELDS),
        *("size", "data", "json", "text", "raw_b64", "view", "blob"),
    ),
    "artifact": tuple(field.key for field in _line_fields(ArtifactState)),
    "missed": tuple(field.key for field in _line_fields(MissedGenerations)),
}
"""Members of each kind of line, and of the objects in a task's line. The manual lists them too."""


def _write_fields(fields: tuple[_Field, ...], value: Any, start: int) -> Line:
    line: Line = {}
    for name, key, default, write, _ in fields:
        member = getattr(value, name)
        if member != default:
            line[key] = write(member, start)
    return line


def _read_fields(fields: tuple[_Field, ...], line: Line, start: int) -> Line:
    return {name: read(line[key], start) for name, key, _, _, read in fields if key in line}


def write_line(value: msgspec.Struct, start: int) -> Line:
    """Return the line of a value that is not a frame: `{"connection": 1, ...}`."""
    return _write_fields(_FIELDS[type(value)], value, start)


def read_line(kind: type[_Value], line: Line, start: int) -> _Value:
    """Inverse of `write_line`. Raises TypeError, KeyError or ValueError if the line is not
    valid."""
    return kind(**_read_fields(_FIELDS[kind], line, start))


def write_frame(value: Frame, start: int, payload: Line) -> Line:
    """Return `{"frame": "event", ...}` with `payload` last.

    `began` is omitted if it equals `at`, `size` if it is the length of the payload.
    """
    line = _write_fields(_FRAME_FIELDS, value, start)
    if value.began == value.at:
        del line["began"]
    if value.size != len(value.payload):
        line["size"] = value.size
    line.update(payload)
    return line


def frame_members(frames: Sequence[Frame]) -> dict[str, list[Any]]:
    """Return the members that `write_frame` writes for many frames, by name, with None for omitted
    ones.

    Times are since the epoch, `began` is always present, members of the payload never. Each
    distinct value is converted once.
    """
    members = {}
    for name, key, default, write, _ in _FRAME_FIELDS:
        values = list(map(attrgetter(name), frames))
        known = {value: write(value, 0) for value in set(values)} | {default: None}
        members[key] = list(map(known.__getitem__, values))
    return members


def read_frame(line: Line, start: int, payload: bytes) -> Frame:
    """Inverse of `write_frame`. Raises as `read_line` does."""
    members = _read_fields(_FRAME_FIELDS, line, start)
    members.setdefault("began", members["at"])
    return Frame(payload=payload, size=line.get("size", len(payload)), **members)
