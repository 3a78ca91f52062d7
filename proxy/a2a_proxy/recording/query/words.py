"""The closed lists of words of the fields, with the stored values that they match."""

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind, FrameKind, Severity
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES, RPC_REASONS, RPC_REASONS_0_1
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, OPERATIONS
from a2a_proxy.protocol.summary import STATE_NUMBERS
from a2a_proxy.recording.query import kinds

EVENT_OFFSET = 100
"""Keys of event kinds begin here, above those of frame kinds."""


def _operation_names() -> dict[str, tuple[int | str, ...]]:
    """Return every name of every operation: 1.0, JSON-RPC of the older versions, gRPC."""
    words: dict[str, tuple[int | str, ...]] = {name: (name,) for name in OPERATION_BY_NAME}
    for operation in OPERATIONS:
        for name, _ in (*operation.rpc_v0, *operation.grpc_v0):
            words.setdefault(name, (operation.name,))
    return words


def _code_names() -> dict[str, tuple[int | str, ...]]:
    found: dict[str, set[int]] = {}
    for table in (RPC_REASONS, RPC_REASONS_0_1, dict(enumerate(GRPC_STATUS_NAMES))):
        for number, name in table.items():
            if number:
                found.setdefault(name, set()).add(number)
    return {name: tuple(sorted(numbers)) for name, numbers in sorted(found.items())}


def _number_keys(names: dict[str, int]) -> dict[str, tuple[int | str, ...]]:
    return {name: (number,) for name, number in names.items() if number}


_OPERATIONS = _operation_names()
_STATES = {state.label: int(state) for state in TaskState} | STATE_NUMBERS
_FRAME_KINDS = {kind.name.lower(): int(kind) for kind in FrameKind}
_EVENT_KINDS = {kind.name.lower(): EVENT_OFFSET + kind for kind in EventKind if kind}
_PARTS = {
    "text": ("text",),
    "data": ("data",),
    "raw": ("raw",),
    "url": ("url",),
    "file": ("raw", "url"),
}
_YES: dict[str, tuple[int | str, ...]] = {"yes": (1,)}

_OPERATION_LABELS = {name: str(keys[0]) for name, keys in _OPERATIONS.items()}
OPERATION = kinds.choice_kind("operation", _OPERATIONS, ": = ~", _OPERATION_LABELS, prefixes=True)
OUTCOME = kinds.choice_kind(
    "outcome", {each: (each,) for each in ("ok", "error", "cut", "refused", "live")}, ": ="
)
BINDING = kinds.choice_kind("binding", {each.value: (each.value,) for each in Binding}, ": = ~")
DIRECTION = kinds.choice_kind("direction", {"to-agent": (0,), "to-client": (1,)}, ": =")
KIND = kinds.choice_kind("kind of frame", _number_keys(_FRAME_KINDS | _EVENT_KINDS), ": =")
STATE = kinds.choice_kind(
    "state",
    _number_keys(_STATES),
    ": =",
    {name: TaskState(number).label for name, number in _STATES.items()},
)
SEVERITY = kinds.choice_kind(
    "severity", {each.name.lower(): (int(each),) for each in Severity}, ": = < <= > >="
)
PART = kinds.choice_kind("kind of part", _PARTS, ": =")
SOURCE = kinds.choice_kind("source", {"peer": (0,), "proxy": (1,)}, ": =")
FLAG = kinds.choice_kind("answer", _YES, ":")
CODE = kinds.coded_kind(_code_names())
