"""One session's conversations as a tree of contexts, tasks and turns, with tool calls and
hand-offs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from a2a_inspect.data.agent_names import AgentNames
from a2a_proxy.model.values import CLIENT, Handoff, Interruption
from a2a_proxy.protocol.segments.content import ToolEvent
from a2a_proxy.protocol.segments.measures import Turn, turns_of
from a2a_proxy.recording.read.conversations import Conversations, SegmentContent

_FINAL_STATES = frozenset({"completed", "failed", "canceled", "rejected"})


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call with its answers (manual/protocol.md "Tools and media")."""

    name: str
    id: str
    called_at: int
    """Time of the call, ns since the epoch; 0 if only answers were seen."""
    answers: tuple[int, ...]
    """Time of each answer, ns since the epoch."""
    completed: bool
    """Whether the call was answered by the time the task ended; True while the task is open."""

    @property
    def latency(self) -> int | None:
        """Time from the call to the first answer, ns."""
        return self.answers[0] - self.called_at if self.answers and self.called_at else None

    @property
    def period(self) -> int | None:
        """Mean time between answers, ns; None with fewer than two answers."""
        count = len(self.answers) - 1
        return (self.answers[-1] - self.answers[0]) // count if count > 0 else None

    @property
    def drift(self) -> int | None:
        """Excess of the longest time between two answers over the mean, ns."""
        gaps = [b - a for a, b in zip(self.answers, self.answers[1:], strict=False)]
        return max(gaps) - self.period if self.period is not None else None


class ConversationTree(msgspec.Struct):
    """All turns of one task, or of one exchange that created no task."""

    agent: str
    task_id: str
    context_id: str
    turns: list[Turn]
    interruptions: list[Interruption]
    handoffs: list[Handoff]
    """Hand-offs that start in this conversation."""
    tools: list[ToolCall]
    children: list[ConversationTree]
    """Conversations that this one handed over to."""

    @property
    def exchanges(self) -> set[int]:
        """Numbers of the exchanges in which its segments begin and end."""
        found = {segment.exchange for turn in self.turns for segment in turn.segments}
        return found | {segment.last_exchange for turn in self.turns for segment in turn.segments}


class SessionConversations(msgspec.Struct):
    """The conversations of one session."""

    conversations: list[ConversationTree]
    """Conversations in the order in which they began."""
    contents: dict[int, SegmentContent]
    carried_shares: dict[int, float]
    """Hand-off -> share of the earlier content that is in the request to the new agent
    (manual/protocol.md "Hand-offs").
    """
    names: AgentNames

    def conversations_by_context(self) -> Iterator[tuple[str, list[ConversationTree]]]:
        """Yield the conversations that no other one handed over to, by context in order of first
        appearance."""
        children = {id(child) for talk in self.conversations for child in talk.children}
        groups: dict[str, list[ConversationTree]] = {}
        for talk in self.conversations:
            if id(talk) not in children:
                groups.setdefault(talk.context_id, []).append(talk)
        yield from groups.items()


def build_session_conversations(
    conversations: Conversations, names: AgentNames
) -> SessionConversations:
    """Build the tree from the segments, turns, hand-offs and tool calls."""
    talks: dict[tuple[str, str, int], ConversationTree] = {}
    by_exchange: dict[tuple[int, str], ConversationTree] = {}
    for turn in turns_of(conversations.segments):
        first = turn.segments[0]
        name = (first.agent, first.task_id, 0 if first.task_id else first.exchange)
        if name not in talks:
            talks[name] = ConversationTree(
                first.agent, first.task_id, first.context_id, [], [], [], [], []
            )
        talks[name].turns.append(turn)
        talks[name].context_id = talks[name].context_id or turn.segments[-1].context_id
        by_exchange.setdefault((first.exchange, first.agent), talks[name])
    for broken in conversations.interruptions:
        talk = talks.get((broken.agent, broken.task_id, 0))
        if talk is not None:
            talk.interruptions.append(broken)
    for handoff in conversations.handoffs:
        _attach_handoff(handoff, talks, by_exchange)
    for talk in talks.values():
        talk.tools = _collect_tool_calls(talk, conversations.contents)
    carried = {
        each.id: share
        for each in conversations.handoffs
        if (share := _carried_share(each, conversations)) is not None
    }
    return SessionConversations(list(talks.values()), conversations.contents, carried, names)


def _attach_handoff(
    handoff: Handoff,
    conversations: dict[tuple[str, str, int], ConversationTree],
    by_exchange: dict[tuple[int, str], ConversationTree],
) -> None:
    parent = conversations.get((handoff.agent, handoff.task_id, 0))
    if parent is None:
        return
    parent.handoffs.append(handoff)
    child = conversations.get((handoff.to_agent, handoff.to_task, 0)) or by_exchange.get(
        (handoff.to_exchange, handoff.to_agent)
    )
    if (
        handoff.kind != "delegation"
        or child is None
        or child is parent
        or _is_ancestor(child, parent)
    ):
        return
    if not any(each is child for each in parent.children):
        parent.children.append(child)


def _is_ancestor(conversation: ConversationTree, descendant: ConversationTree) -> bool:
    """Return whether `descendant` is somewhere below `conversation`."""
    return any(
        child is descendant or _is_ancestor(child, descendant) for child in conversation.children
    )


def _collect_tool_calls(
    conversation: ConversationTree, contents: dict[int, SegmentContent]
) -> list[ToolCall]:
    calls: dict[tuple[str, str], int] = {}
    answers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for turn in conversation.turns:
        for segment in turn.segments:
            content = contents.get(segment.id)
            for event in content.heard if content is not None else ():
                if isinstance(event.what, ToolEvent):
                    name = (event.what.name, event.what.id)
                    if event.what.response:
                        answers[name].append(event.at)
                    else:
                        calls.setdefault(name, event.at)
    over = conversation.turns[-1].segments[-1].reason in _FINAL_STATES
    names = dict.fromkeys((*calls, *answers))
    return [
        ToolCall(
            name,
            ident,
            calls.get((name, ident), 0),
            tuple(answers[name, ident]),
            bool(answers[name, ident]) or not over,
        )
        for name, ident in names
    ]


def _carried_share(handoff: Handoff, conversations: Conversations) -> float | None:
    """Return the share of earlier texts and blobs that is in the request to the new agent; None
    within one task."""
    if handoff.kind == "transfer":
        return None
    before: set[int] = set()
    request: set[int] = set()
    for segment in conversations.segments:
        content = conversations.contents.get(segment.id)
        if content is None:
            continue
        if segment.agent == handoff.agent and segment.task_id == handoff.task_id:
            before |= {mark for mark, at in content.marks.items() if at <= handoff.at}
        elif segment.exchange == handoff.to_exchange and segment.speaker == CLIENT:
            request |= set(content.marks)
    return len(before & request) / len(before) if before else None
