"""Records of several threads in the order of their times."""

from __future__ import annotations

import itertools
import threading

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.journal_buffer import JournalBuffer
from support_relay import MemoryJournal

_DATA, _TO_AGENT, _TO_CLIENT = ChunkKind.DATA, Direction.TO_AGENT, Direction.TO_CLIENT


class _Journal(MemoryJournal):
    """Knows how often it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def _tape() -> tuple[JournalBuffer, _Journal]:
    journal = _Journal()
    return JournalBuffer(journal, itertools.count(1).__next__), journal


def test_a_request_precedes_an_answer_noted_by_another_thread() -> None:
    tape, journal = _tape()
    tape.note_record(_DATA, _TO_AGENT, b"request")
    assert not journal.chunks  # not before it is forwarded
    tape.note_record(_DATA, _TO_CLIENT, b"answer")
    tape.write()
    assert [(chunk.data, chunk.at, chunk.connection) for chunk in journal.chunks] == [
        (b"request", 1, 1),
        (b"answer", 2, 1),
    ]
    assert journal.flushed == 1


def test_concurrent_notes_are_complete_and_ordered_by_time() -> None:
    tape, journal = _tape()

    def work(name: int) -> None:
        for number in range(500):
            tape.note_record(_DATA, _TO_AGENT, b"%d %d" % (name, number))
            tape.write()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [chunk.at for chunk in journal.chunks] == list(range(1, 2001))
    for name in range(4):
        own = [chunk.data for chunk in journal.chunks if chunk.data.startswith(b"%d " % name)]
        assert own == [b"%d %d" % (name, number) for number in range(500)]


def test_nothing_is_written_after_the_end() -> None:
    tape, journal = _tape()
    tape.note_record(ChunkKind.CLOSED, _TO_AGENT)
    tape.note_record(_DATA, _TO_AGENT, b"late")
    tape.write()
    assert [chunk.kind for chunk in journal.chunks] == [ChunkKind.CLOSED]
