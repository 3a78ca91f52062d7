"""What a rule is, and the catalogue of all of them.

A rule is one function with its documentation: the decorator `rule` gives it its facts and one flagged and one clean
example; its docstring says what is flagged (first paragraph) and why that matters (the rest). Everything else, the
catalogue, `a2a-inspect rules`, the text under a finding and the manual's page, is derived from these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from enum import Enum, IntFlag, StrEnum
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.examples.script import Script

if TYPE_CHECKING:
    from a2a_proxy.rules.context import RuleContext
    from a2a_proxy.rules.state.records import ExchangeRecord


class HookPoint(StrEnum):
    """When a rule is asked."""

    REQUEST = "request"
    """Once for each frame of kind REQUEST, as soon as the dialect is settled: when the first answer is there, or the
    exchange is over."""
    HEADS = "heads"
    """Once an exchange, at the same time, after its requests: request line, header fields, response head."""
    ANSWER = "answer"
    """For each frame of the agent that is an answer or stands in the place of one: RESPONSE, EVENT, ERROR, OTHER,
    UNDECODABLE, COMMENT, and gRPC trailers (END)."""
    CLOSED = "closed"
    """Once an exchange, when it is over and a peer ended it."""
    CONNECTION = "connection"
    """For each frame of the connection itself (exchange 0), the lines of a log apart."""


class EvidenceScope(StrEnum):
    """What a rule has to know (manual/protocol.md "Rules and evidence")."""

    FRAME = "frame"
    EXCHANGE = "exchange"
    SESSION = "session"
    LIVE = "live state"
    """Facts joined over all connections and bindings: less sure where the beginning was not seen."""


class FrameFlag(IntFlag):
    """What is notable about a frame of the agent; a rule names the flags that concern it."""

    UNCLEAN = 1
    """Its payload is not provably faultless (`gate`): rules about payloads look at it. Also for requests."""
    FIRST = 1 << 1
    """The first answer of the exchange (comments apart)."""
    TASK = 1 << 2
    STATUS = 1 << 3
    ARTIFACT = 1 << 4
    MESSAGE = 1 << 5
    CARD = 1 << 6
    LIST = 1 << 7
    """The answer to ListTasks."""
    PUSH = 1 << 8
    """A push configuration, or several."""
    OTHER = 1 << 9
    """An answer that is none of A2A's objects: another result, another body, a comment, bytes that cannot be read."""
    ERROR = 1 << 10
    """An A2A error, also as gRPC trailers with a status other than 0."""
    END = 1 << 11
    """gRPC trailers, or the end of an event stream."""
    NEW_TASK = 1 << 12
    """The task was not known before this frame."""
    CHANGED = 1 << 13
    """The task goes into another state than the one known before, and no other stream has shown that yet."""
    SAME = 1 << 14
    """A status update in the state that this stream has shown last."""
    TERMINAL = 1 << 15
    """It says a terminal state."""
    INTERRUPTED = 1 << 16
    """It says INPUT_REQUIRED or AUTH_REQUIRED."""
    AFTER_TERMINAL = 1 << 17
    """The task was terminal before this frame, as far as this exchange could know."""
    NUMBERED = 1 << 18
    """It has a generation, or its task or agent has shown one before."""
    APPEND = 1 << 19
    """An artifact update with `append`."""
    KNOWN_ARTIFACT = 1 << 20
    """An artifact update, the artifact of which is known."""
    SHARED = 1 << 21
    """More than one stream of the task is open, or was 10 s ago."""
    FOREIGN = 1 << 22
    """Its task is not the one of this exchange, or its context is not the task's."""
    REPEAT = 1 << 23
    """The same bytes came on this stream before."""
    LATER = 1 << 24
    """On a stream: there was an event before this one."""
    FRAMED = 1 << 25
    """An event of a stream that is more than one data line and its empty line; a gRPC message that is compressed; a
    message on a pipe with more than a right length and the usual type. Also for requests."""
    LARGE = 1 << 26
    """Its payload is over 4 MiB. Also for requests."""
    AFTER_ERROR = 1 << 27
    """On a stream: there was an error before this frame."""
    LEFT_TERMINAL = 1 << 28
    """It shows another state after a terminal one, and neither a lagging stream nor an old snapshot explains that."""
    STALE = 1 << 29
    """A snapshot of the task as it was before a terminal state that had been relayed before the request."""
    BACKWARDS = 1 << 30
    """Its status has an earlier timestamp than the one before on this stream, by over a second."""
    IDLE = 1 << 31
    """A status update without anything that the status before on this stream did not say."""
    REUSED_MESSAGE_ID = 1 << 32
    """The id of its message stood for another content before."""
    GROWN = 1 << 35
    """That content was the beginning of this one."""
    OVERDUE = 1 << 36
    """It goes on with a task that was over elsewhere, for longer than a stream lags; or its status is from after it."""
    STRAY = 1 << 37
    """A message in its status or history names another task or context."""
    ODD_CHUNK = 1 << 33
    """An artifact update that does not simply go on: appends to what is not known or is complete, or replaces."""
    DRIFT = 1 << 34
    """An artifact update that describes its artifact otherwise than before."""
    TOGETHER = 1 << 38
    """A status update 2 s and more after the call, at most 0.3 s after the first such."""
    CARD_KNOWN = 1 << 40
    """Of the exchange, as all up to `ODD_END`, and worked out by `given`: a card of its agent was seen."""
    NAMES = 1 << 41
    """Its request names a task or a context. Also for a later message of a live stream."""
    EXTENDS = 1 << 42
    """Its heads have a field of extensions; of gRPC trailers: they have."""
    COUNTS = 1 << 43
    """Its request speaks of generations, or a version that has them."""
    PUSHES = 1 << 44
    """Its request may have a push configuration."""
    LIMITS = 1 << 45
    """Its request may have a `historyLength`."""
    ODD_HEAD = 1 << 46
    """It is no plain call of A2A: a query, a user in the authority, no operation, a status other than 200."""
    ODD_END = 1 << 47
    """At `CLOSED`: it broke off, or its HTTP or gRPC status is not that of success."""
    COUNTED = 1 << 49
    """An answer that is none of A2A's objects, as `OTHER`, and has a generation: an event of a proposal (Q-32)."""
    ASKS = 1 << 48
    """A request: for rules that are asked about some requests' answers and about all requests."""


EXCHANGE_FLAGS = (
    FrameFlag.CARD_KNOWN
    | FrameFlag.NAMES
    | FrameFlag.EXTENDS
    | FrameFlag.COUNTS
    | FrameFlag.PUSHES
    | FrameFlag.LIMITS
    | FrameFlag.ODD_HEAD
    | FrameFlag.ODD_END
)
"""What is the same for all frames of an exchange."""
ANY_EVENT = FrameFlag.TASK | FrameFlag.STATUS | FrameFlag.ARTIFACT | FrameFlag.MESSAGE
"""Any A2A event or answer that is one."""


class Dialects(Enum):
    """Protocol lines in groups, as rules distinguish them."""

    ALL = frozenset(Dialect)
    OLD = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})
    V0_2_0_3 = frozenset({Dialect.V0_2, Dialect.V0_3})
    SINCE_0_2 = frozenset({Dialect.V0_2, Dialect.V0_3, Dialect.RC, Dialect.V1_0, Dialect.V1_1})
    V1 = frozenset({Dialect.V1_0, Dialect.V1_1})
    """1.0 and later; the release candidate has its own tables and is not judged by these."""
    DRAFT_1_1 = frozenset({Dialect.V1_0, Dialect.V1_1, Dialect.UNKNOWN})
    """Features of the 1.1 draft: judged where the wire shows them, whatever the version says."""


JSONRPC = frozenset({Binding.JSONRPC})
REST = frozenset({Binding.REST})
GRPC = frozenset({Binding.GRPC})
STDIO = frozenset({Binding.STDIO})
CARD = frozenset({Binding.CARD})
WEBHOOK = frozenset({Binding.WEBHOOK})
HTTP = JSONRPC | REST
ENVELOPE = JSONRPC | STDIO
"""JSON-RPC, whatever carries it."""
NETWORK = JSONRPC | REST | GRPC
"""The bindings of calls that have heads, and connections of their own."""
RPC = NETWORK | STDIO
"""All bindings of calls."""
JSON_TEXT = ENVELOPE | REST | WEBHOOK | CARD
ALL_BINDINGS = RPC | WEBHOOK | CARD


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One breach that a rule found; the engine makes a finding of it."""

    summary: str
    """One line in words, lower case, with the values that tell: `id "1" answers request id 1`."""
    path: str = ""
    """Where in the payload, dotted from its root: `result.status.state`. A hit in a redacted place is dropped."""
    value: str = ""
    """What stands there, short."""
    severity: Severity | None = None
    """Where a variant of the rule is less grave than the rule."""
    is_sure: bool = True
    """False lowers the confidence."""
    seq: int | None = None
    """The frame it is about where that is not the one being looked at; -1 for the exchange as a whole."""
    track: ExchangeRecord | None = None
    """The exchange it is about where that is not the one being looked at."""


Judge = Callable[["RuleContext"], Iterable[RuleFinding]]
DueJudge = Callable[["RuleContext"], Iterable[RuleFinding]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of the catalogue."""

    id: str
    """`A2A-GEN-001`."""
    title: str
    severity: Severity
    hook_points: frozenset[HookPoint]
    scope: EvidenceScope
    section: str
    """Where the specification says so."""
    dialects: Dialects
    bindings: frozenset[Binding]
    description: str
    rationale: str
    flagged: Script
    clean: Script
    also_broken: tuple[str, ...] = ()
    """Other rules that the flagged example breaks too."""
    trigger_flags: FrameFlag | None = None
    """Asked about a frame that has one of these; at `HEADS` and `CLOSED` always."""
    required_flags: FrameFlag | None = None
    """And one of these: without them it would find nothing, so that not asking saves time and changes nothing."""
    operations: frozenset[str] = frozenset()
    """Operations it is about; empty: all."""
    draft: bool = False
    """The feature is in no released version; judged only where the wire shows it."""
    judge: Judge
    due: DueJudge | None = None
    """Called at the time that `judge` asked for with `RuleContext.schedule_due`."""
    module: str = ""

    @property
    def family(self) -> str:
        """`GEN` of `A2A-GEN-001`."""
        return self.id.split("-")[1]


_CATALOGUE: dict[str, Rule] = {}


def rule(
    ident: str,
    title: str,
    severity: Severity,
    *,
    section: str,
    flagged: Script,
    clean: Script,
    hook_points: HookPoint | tuple[HookPoint, ...] = HookPoint.ANSWER,
    scope: EvidenceScope = EvidenceScope.FRAME,
    dialects: Dialects = Dialects.ALL,
    bindings: frozenset[Binding] = RPC,
    trigger_flags: FrameFlag | None = None,
    required_flags: FrameFlag | None = None,
    operations: Iterable[str] = (),
    also_broken: tuple[str, ...] = (),
    draft: bool = False,
    due: DueJudge | None = None,
) -> Callable[[Judge], Judge]:
    """Put the decorated function into the catalogue. `operations` are 1.0 names; see `Rule` for the rest."""

    def add(judge: Judge) -> Judge:
        what, _, why = inspect.cleandoc(judge.__doc__ or "").partition("\n\n")
        if ident in _CATALOGUE:
            raise ValueError(f"{ident} is there twice")
        _CATALOGUE[ident] = Rule(
            id=ident,
            title=title,
            severity=severity,
            hook_points=frozenset({hook_points} if isinstance(hook_points, HookPoint) else hook_points),
            scope=scope,
            section=section,
            dialects=dialects,
            bindings=bindings,
            description=" ".join(what.split()),
            rationale=" ".join(why.split()),
            flagged=flagged,
            clean=clean,
            also_broken=also_broken,
            trigger_flags=trigger_flags,
            required_flags=required_flags,
            operations=frozenset(operations),
            draft=draft,
            judge=judge,
            due=due,
            module=judge.__module__,
        )
        return judge

    return add


def registered_rules() -> dict[str, Rule]:
    """What has been registered so far, by id in order; `catalogue.rules` has all."""
    return {ident: _CATALOGUE[ident] for ident in sorted(_CATALOGUE)}
