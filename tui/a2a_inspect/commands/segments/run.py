"""The segments command: select conversations and print them as text or JSON."""

from pathlib import Path

import msgspec

from a2a_inspect.commands.segments.conversation_tree import (
    ConversationTree,
    SessionConversations,
    build_session_conversations,
)
from a2a_inspect.commands.segments.lines import conversation_lines, summary_lines
from a2a_inspect.commands.segments.media import collect_media, write_media
from a2a_inspect.commands.segments.objects import conversation_objects, summary_object
from a2a_inspect.commands.segments.summary import MeasureValues
from a2a_inspect.data.agent_names import AgentNames
from a2a_inspect.data.references import (
    is_task_prefix,
    no_such_place,
    parse_reference,
    resolve_places,
)
from a2a_inspect.data.session_lines import session_line
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.conversations import read_conversations
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow


class SegmentsOptions(msgspec.Struct, frozen=True):
    """Options of the segments command."""

    words: tuple[str, ...] = ()
    """Exchange numbers (`2`, or `1:2` with its session) and beginnings of task ids; empty:
    everything."""
    as_json: bool = False
    media: Path | None = None
    """Folder to which media are written."""

    def is_selected(self, session: int, talk: ConversationTree) -> bool:
        """Return whether the conversation is selected."""
        return not self.words or any(
            _is_conversation_named(word, session, talk) for word in self.words
        )


def _is_conversation_named(word: str, session: int, conversation: ConversationTree) -> bool:
    """Return whether the word names this conversation."""
    reference = parse_reference(word)
    if (
        reference is not None
        and reference.seq < 0
        and any(reference.is_in_exchange(session, number) for number in conversation.exchanges)
    ):
        return True
    return is_task_prefix(word, conversation.task_id)


def show_segments(recording: Recording, options: SegmentsOptions) -> None:
    """Print the turns of the selected conversations, then a summary for each session.

    Raises:
        UserError: a word names no conversation, or media cannot be written.
    """
    missing = set(options.words)
    for session in recording.read_sessions():
        session_talks = build_session_conversations(
            read_conversations(recording, session), AgentNames(recording, session.id)
        )
        missing = {
            word
            for word in missing
            if not any(
                _is_conversation_named(word, session.id, talk)
                for talk in session_talks.conversations
            )
        }
        selected = [
            talk for talk in session_talks.conversations if options.is_selected(session.id, talk)
        ]
        if options.words and not selected:
            continue
        if options.as_json:
            _print_objects(session, session_talks, selected)
        else:
            _print_lines(session, session_talks, selected)
        if options.media is not None:
            _write_media_files(
                options.media, session.id, session_talks, selected, as_json=options.as_json
            )
    for word in options.words:
        if word in missing:
            raise _no_conversation(recording, word)


def _no_conversation(recording: Recording, word: str) -> UserError:
    """Return the error for a word that names no conversation."""
    if not resolve_places(recording, word):
        return no_such_place(recording, word)
    name = make_visible(Path(recording.path).name)
    listing = shell_line("a2a-inspect", "ls", recording.path)
    return UserError(
        f"{word} of {name} is not an exchange with messages", f"list exchanges and tasks: {listing}"
    )


def _print_objects(
    session: SessionRow, gathered: SessionConversations, conversations: list[ConversationTree]
) -> None:
    for talk in conversations:
        for each in conversation_objects(session.id, talk, gathered):
            print_json(each)
    print_json(summary_object(session.id, MeasureValues(conversations, gathered.contents)))


def _print_lines(
    session: SessionRow, gathered: SessionConversations, conversations: list[ConversationTree]
) -> None:
    print_line(session_line(session))
    if not conversations:
        print_line("  no messages")
        return
    chosen_ids = {id(talk) for talk in conversations}
    for context, talks in gathered.conversations_by_context():
        visible = [talk for talk in talks if _is_selected_or_ancestor(talk, chosen_ids)]
        if visible:
            print_line(f"  context {context}" if context else "  outside any context")
        for talk in visible:
            for line in conversation_lines(talk, gathered, 2):
                print_line(line)
    for line in summary_lines(MeasureValues(conversations, gathered.contents)):
        print_line("  " + line)


def _is_selected_or_ancestor(conversation: ConversationTree, selected_ids: set[int]) -> bool:
    """Return whether the conversation, or one that it handed over to, is selected."""
    return id(conversation) in selected_ids or any(
        _is_selected_or_ancestor(child, selected_ids) for child in conversation.children
    )


def _write_media_files(
    folder: Path,
    session: int,
    gathered: SessionConversations,
    conversations: list[ConversationTree],
    *,
    as_json: bool,
) -> None:
    objects = [each for talk in conversations for each in collect_media(talk, gathered)]
    for facts in write_media(folder, objects):
        if as_json:
            print_json({"what": "media", "session": session, **facts})
    if not as_json:
        print_line(f"  {text.format_count(len(objects), 'media object')} written to {folder}")
