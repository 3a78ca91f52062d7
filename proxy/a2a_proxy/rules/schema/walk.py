"""Walk over a payload along its shapes that collects all schema faults."""

from typing import Any

from a2a_proto.shapes.json_0_3 import EVENT_SHAPES
from a2a_proto.shapes.shape import Family, Grammar, JsonKind, ObjectShape, ShapeMember
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.schema.fault import FaultKind, SchemaFault, format_value
from a2a_proxy.rules.schema.leaf import CONTENT, check_value

MAX_FAULTS = 50
"""Maximum number of faults recorded for one payload."""

REMOVED_MEMBERS = frozenset(
    (
        "kind",
        "final",
        "blocking",
        "pushNotificationConfig",
        "schemes",
        "mimeType",
        "file",
        "stateTransitionHistory",
    )
)
"""Members that 1.0 removed (1.0 appendix A.2.1)."""
_CARD_SHAPES = frozenset(("AgentCard", "AgentInterface", "AgentSkill"))
_SHARED_SHAPES = frozenset(("history", "timeline", "messageUpdate"))
"""Members that contain messages of both sides."""
_FILE_SHAPES = frozenset(("File", "FilePart"))
_FILE_HOLDS = ("bytes", "uri", "fileWithBytes", "fileWithUri", "file_with_bytes", "file_with_uri")
_PART_SHAPES = {"text": "PartText", "file": "PartFile", "data": "PartData"}
EVENTS_0_3 = {kind: shape for kind, (shape, _) in EVENT_SHAPES.items()}
"""Maps `kind` of 0.2 and 0.3 to the shape."""


_KIND_MARKS = frozenset(
    {"EVENT_MEDIA_START", "EVENT_MEDIA_STOP", "EVENT_MEDIA_PAUSE", "EVENT_INTERRUPT"}
)
"""Media frames without content that mark the start, end, pause or interruption of a flow
(manual/protocol.md "Fields of the live proposals").
"""


class SchemaWalk:
    """A walk over one payload."""

    def __init__(
        self,
        grammar: Grammar,
        speaker: str,
        *,
        fetched_card: bool = False,
        live: bool = False,
        bound: frozenset[str] = frozenset(),
    ) -> None:
        self.faults: list[SchemaFault] = []
        self._grammar = grammar
        self._speaker = speaker
        """Sender of the messages: `user` or `agent`."""
        self._fetched_card = fetched_card
        """Whether the rules about cards report missing members."""
        self._live = live
        """Whether a message that continues a live task may be empty (Q-14)."""
        self._bound = bound
        """Members of the root that are in the path."""

    def walk_object(self, name: str, value: Any, path: str) -> None:
        """Check one object with the shape `name`; `path` is empty or ends with a dot."""
        shape = self._resolve_shape(name, value, path)
        if shape is None or len(self.faults) >= MAX_FAULTS:
            return
        if not isinstance(value, dict):
            where = path.rstrip(".")
            told = f"`{where}`" if where else "the payload"
            self._add_fault(
                FaultKind.RANGE,
                where,
                f"{told} is {format_value(value)}, expected an object",
                value,
            )
            return
        if shape.one_of and self._check_alternatives(shape, value, path):
            return
        self._check_members(shape, value, path)
        self._check_required(shape, value, path)
        if shape.name in _FILE_SHAPES and self._grammar.family in (Family.OLD, Family.OLD_PROTO):
            self._check_file(value, path)

    def _resolve_shape(self, name: str, value: Any, path: str) -> ObjectShape | None:
        """Return the shape; for a part of 0.x the one that its `kind` names, or that its members
        show."""
        shapes = self._grammar.shapes
        if name != "Part" or self._grammar.family is not Family.OLD:
            return shapes.get(name)
        if not isinstance(value, dict):
            return shapes["PartText"]
        kind = value.get("kind")
        if isinstance(kind, str) and kind in _PART_SHAPES:
            return shapes[_PART_SHAPES[kind]]
        found = next((_PART_SHAPES[each] for each in _PART_SHAPES if each in value), "")
        if not found:
            self._report_missing_kind(value, path, "a text, a file or data", None)
            return None
        return shapes[found]  # the expected `kind` is reported there

    # --- present members

    def _check_members(self, shape: ObjectShape, value: dict[str, Any], path: str) -> None:
        members, aliases = shape.members, shape.aliases
        plain = shape.name not in CONTENT
        for label, item in value.items():
            member = members.get(label)
            if member is None:
                member = self._report_unknown_member(shape, label, item, path)
                if member is None:
                    continue
            if (
                plain
                and member.kind is JsonKind.TEXT
                and type(item) is str
                and not member.is_repeated
            ):
                continue  # the most common case by far
            name = aliases.get(label, label)
            if item is not None or member.kind is JsonKind.ANY:
                self._check_value(shape, name, member, item, path + label)
            elif name not in shape.required:
                self._add_fault(
                    FaultKind.NULL,
                    path + label,
                    f"`{path}{label}` is null and should be omitted",
                    item,
                )

    def _report_unknown_member(
        self, shape: ObjectShape, label: str, item: Any, path: str
    ) -> ShapeMember | None:
        """Report a member that the shape does not have; return the member if it is only spelled
        differently."""
        real = shape.aliases.get(label)
        family = self._grammar.family
        if real is not None:
            if family is not Family.OLD_PROTO:
                self._add_fault(
                    FaultKind.SNAKE_CASE,
                    path + label,
                    f"`{path}{label}` must be spelled `{real}`",
                    item,
                )
            return shape.members[real]
        if family is Family.OLDEST or (shape.mark and label == "kind"):
            return None
        if family is Family.NEW and label in REMOVED_MEMBERS:
            self._add_fault(
                FaultKind.REMOVED,
                path + label,
                f"`{path}{label}` is a member of 0.3 that 1.0 does not have",
                item,
            )
        else:
            told = f"`{path}{label}` is not a member of {shape.name} in {family.value}"
            self._add_fault(FaultKind.UNKNOWN, path + label, told, item)
        return None

    def _check_value(
        self, shape: ObjectShape, name: str, member: ShapeMember, value: Any, path: str
    ) -> None:
        if not member.is_repeated:
            self._check_single_value(shape, name, member, value, path)
            return
        if not isinstance(value, list):
            self._add_fault(
                FaultKind.RANGE, path, f"`{path}` is {format_value(value)}, expected a list", value
            )
            return
        for index, item in enumerate(value):
            self._check_single_value(shape, name, member, item, f"{path}[{index}]")

    def _check_single_value(
        self, shape: ObjectShape, name: str, member: ShapeMember, value: Any, path: str
    ) -> None:
        if member.kind is JsonKind.SHAPE:
            speaker = self._speaker
            if name in _SHARED_SHAPES:
                self._speaker = ""
            self.walk_object(member.type_name, value, f"{path}.")
            self._speaker = speaker
        elif member.kind is JsonKind.MAP:
            self._check_map(member, value, path)
        elif member.kind is not JsonKind.ANY:
            fault = check_value(self._grammar, shape, name, member, value, path)
            if fault is not None:
                self._append_fault(fault)
            elif name == "role" and self._speaker and shape.name == "Message":
                self._check_role(value, path)

    def _check_map(self, member: ShapeMember, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            self._add_fault(
                FaultKind.RANGE,
                path,
                f"`{path}` is {format_value(value)}, expected an object",
                value,
            )
            return
        for label, item in value.items():
            if member.type_name:
                self.walk_object(member.type_name, item, f"{path}.{label}.")
            elif not isinstance(item, str):
                self._add_fault(
                    FaultKind.RANGE,
                    f"{path}.{label}",
                    f"`{path}.{label}` is {format_value(item)}, expected a text",
                    item,
                )

    def _check_role(self, value: object, path: str) -> None:
        """Check that the role of a message matches its sender."""
        if isinstance(value, str) and not value.lower().endswith(self._speaker):
            side = "client" if self._speaker == "user" else "agent"
            self._add_fault(
                FaultKind.ROLE,
                path,
                f"`{path}` is {format_value(value)} in a message that the {side} sends",
                value,
            )

    # --- missing members

    def _check_required(self, shape: ObjectShape, value: dict[str, Any], path: str) -> None:
        family = self._grammar.family
        if shape.mark and "kind" not in value:
            # Examples of 0.3 omit it from messages that are not the result itself.
            nested = shape.name == "Message" and (path != "" or self._speaker == "user")
            self._report_missing_kind(
                value, path, f'"{shape.mark}"', Severity.INFO if nested else None
            )
        elif shape.mark and value["kind"] != shape.mark:
            self._report_missing_kind(value, path, f'"{shape.mark}"', None)
        if self._fetched_card and shape.name in _CARD_SHAPES:
            self._check_empty_lists(shape, value, path)
            return
        for name in sorted(shape.required):
            if name in shape.filled and self._is_list(shape, name, value):
                continue
            if path == "" and name in self._bound:
                continue
            if not _is_present(
                shape, name, value, strict=family is Family.NEW
            ) and not self._is_default_allowed(shape, name, value):
                told = f"`{path}{name}` is required but {_missing_alternative(shape, name, value)}"
                self._add_fault(FaultKind.MISSING, path + name, told, value.get(name, ""))
        self._check_empty_lists(shape, value, path)

    def _is_list(self, shape: ObjectShape, name: str, value: dict[str, Any]) -> bool:
        """Whether the list is present, or cannot be distinguished from an empty one in protobuf."""
        return self._grammar.binary or isinstance(_get_member(shape, name, value), list)

    def _check_empty_lists(self, shape: ObjectShape, value: dict[str, Any], path: str) -> None:
        for name in sorted(shape.filled):
            if self._is_default_allowed(shape, name, value):
                continue
            found = _get_member(shape, name, value)
            if found == [] or (self._grammar.binary and found is None):
                severity = Severity.INFO if name == "skills" else None
                told = f"`{path}{name}` is empty, expected at least one element"
                self._append_fault(
                    SchemaFault(FaultKind.EMPTY_LIST, path + name, told, "[]", severity)
                )

    def _is_default_allowed(self, shape: ObjectShape, name: str, value: dict[str, Any]) -> bool:
        """Whether the default value is allowed."""
        if name == "parts":
            return self._live and shape.name == "Message" and bool(value.get("taskId"))
        if name == "part":  # a mark of a media flow has no content
            return shape.name == "MediaFrame" and value.get("event") in _KIND_MARKS
        if name == "scopes":
            return self._grammar.binary
        return (
            name == "description"
            and shape.name == "AgentCard"
            and (value.get(name) == "" or self._grammar.binary)
        )

    def _report_missing_kind(
        self, value: dict[str, Any], path: str, what: str, severity: Severity | None
    ) -> None:
        told = (
            f"`{path}kind` is {format_value(value['kind'])}"
            if "kind" in value
            else f"`{path}kind` is missing"
        )
        self._append_fault(
            SchemaFault(FaultKind.UNMARKED, f"{path}kind", f"{told}, expected {what}", "", severity)
        )

    def _check_file(self, value: dict[str, Any], path: str) -> None:
        """Check that a file of 0.3 is either inline or a reference."""
        found = [name for name in _FILE_HOLDS if value.get(name) is not None]
        if len(found) != 1:
            where, has = path.rstrip("."), " and ".join(found) or "neither bytes nor uri"
            self._add_fault(
                FaultKind.FILE,
                where,
                f"`{where}` has {has}, expected exactly one of bytes and uri",
                "",
            )

    # --- alternatives

    def _check_alternatives(self, shape: ObjectShape, value: dict[str, Any], path: str) -> bool:
        """Check that exactly one alternative is set. Returns True if nothing else needs to be
        checked."""
        if self._grammar.family is not Family.NEW:
            return False
        present = [name for name in shape.one_of if _is_set(shape, name, value)]
        where, names = path.rstrip("."), ", ".join(shape.one_of)
        told = f"`{where}`" if where else "the payload"
        if len(present) > 1:
            self._add_fault(
                FaultKind.ALTERNATIVES,
                where,
                f"{told} has {' and '.join(present)}, expected exactly one of them",
                "",
            )
            return False
        if (
            present or shape.name == "TimelineEntry"
        ):  # clients skip entries of unknown kinds (1.1 draft 3.2.8)
            return False
        if shape.name == "Part":
            if "file" not in value:  # reported by another rule
                self._add_fault(FaultKind.ALTERNATIVES, where, f"{told} has none of {names}", "")
            return False
        strange = [
            name
            for name, item in value.items()
            if name not in shape.members and isinstance(item, dict)
        ]
        if len(value) == 1 and strange:  # an unknown kind of event
            return False
        self._add_fault(
            FaultKind.ALTERNATIVES,
            where,
            f"{told} has none of {names}{_wrapper_hint(shape, value)}",
            "",
        )
        return True

    def _add_fault(self, kind: FaultKind, path: str, message: str, value: object) -> None:
        self._append_fault(
            SchemaFault(kind, path, message, format_value(value) if value != "" else "")
        )

    def _append_fault(self, fault: SchemaFault) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)


def _get_member(shape: ObjectShape, name: str, value: dict[str, Any]) -> Any:
    """Return the member under any of its spellings."""
    if name in value or not shape.aliases:
        return value.get(name)
    return next(
        (value[other] for other, real in shape.aliases.items() if real == name and other in value),
        None,
    )


def _is_set(shape: ObjectShape, name: str, value: dict[str, Any]) -> bool:
    """Whether the member is set; null counts as a value if any JSON is allowed."""
    return _get_member(shape, name, value) is not None or (
        name in value and shape.members[name].kind is JsonKind.ANY
    )


def _is_present(shape: ObjectShape, name: str, value: dict[str, Any], strict: bool) -> bool:
    found = _get_member(shape, name, value)
    if found is None:
        return False
    return not strict or (
        found != "" and not (found == 0 and shape.members[name].kind is JsonKind.INT32)
    )


def _missing_alternative(shape: ObjectShape, name: str, value: dict[str, Any]) -> str:
    found = _get_member(shape, name, value)
    if found is None:
        return "null" if name in value else "missing"
    return "empty" if found == "" else format_value(found)


def _wrapper_hint(shape: ObjectShape, value: dict[str, Any]) -> str:
    """Return a hint if the object lacks its wrapper."""
    if "task" in shape.one_of and "id" in value and "status" in value:
        return ": it looks like a task without its wrapper"
    if "message" in shape.one_of and "parts" in value:
        return ": it looks like a message without its wrapper"
    if "statusUpdate" in shape.one_of and "taskId" in value:
        return ": it looks like an update without its wrapper"
    return ""
