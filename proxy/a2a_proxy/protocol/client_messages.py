"""Client messages that may have advanced a task's generation (A2A 1.1 draft section 3.2.7).

A client message that is added to the timeline advances `generation`, but need not be sent to
subscribers as an event. A missing generation is therefore explained if a message can have it. Each
message has one generation, the same on every stream; it is above every generation relayed before
the message was sent, because the agent cannot number a message that it does not have yet. There is
no other bound in time: events in flight may be numbered before the message.
"""

from collections.abc import Iterable
from zlib import crc32

import msgspec

MAX_MESSAGES = 32
"""Messages of a task that are kept; the oldest is dropped first."""
MAX_NUMBERS = 64
"""Missing generations of a task that are matched with messages; the lowest is dropped first."""


def message_key(message_id: str) -> int:
    """Return the CRC-32 of a message's id."""
    return crc32(message_id.encode("utf-8", "surrogatepass"))


class ClientMessage(msgspec.Struct, gc=False):
    """One message of a client to a task. A repetition with the same `messageId` is the same
    message."""

    key: int
    """CRC-32 of its `messageId`, or of exchange and position if it has none."""
    exchanges: list[int]
    """The exchanges that carried it and were not refused."""
    floor: int
    """Highest generation relayed before it was sent."""
    ceiling: int = 0
    """Highest generation that it can have, from an answer of the agent; 0 if unknown."""
    generation: int = 0
    """Its generation, if a timeline has shown it."""

    def can_have(self, generation: int) -> bool:
        """Whether the message can have this generation."""
        if not self.exchanges:
            return False
        if self.generation:
            return self.generation == generation
        return self.floor < generation and (not self.ceiling or generation <= self.ceiling)


class ClientMessages(msgspec.Struct, gc=False):
    """The client messages of one task, each matched with at most one missing generation."""

    messages: list[ClientMessage] = []
    missing: list[int] = []
    """Generations that no event has carried so far."""
    matches: dict[int, int] = {}
    """Missing generation -> key of the message that explains it."""

    def add_message(self, message_id: str, exchange: int, position: int, floor: int) -> None:
        """Add a message that was sent while `floor` was the highest generation relayed."""
        key = message_key(message_id or f"{exchange} {position}")
        known = next((each for each in self.messages if each.key == key), None)
        if known is None:
            self.messages.append(ClientMessage(key, [exchange], floor))
            if len(self.messages) > MAX_MESSAGES:
                del self.messages[0]
        elif exchange not in known.exchanges:
            if not known.exchanges:
                known.floor = floor
            known.exchanges.append(exchange)

    def refuse_exchange(self, exchange: int) -> list[int]:
        """Drop the messages that only this refused exchange carried; return the generations no
        longer explained."""
        for each in self.messages:
            if exchange in each.exchanges:
                each.exchanges.remove(exchange)
        return self._match_again()

    def bound_exchange(self, exchange: int, generation: int) -> list[int]:
        """Note that the agent had numbered the messages of an exchange when it sent this
        generation."""
        for each in self.messages:
            if exchange in each.exchanges and not each.ceiling and generation > each.floor:
                each.ceiling = generation
        return self._match_again()

    def bound_message(self, message_id: str, generation: int) -> list[int]:
        """Note that a Task with this generation includes the message; return the generations no
        longer explained."""
        known = self.message_named(message_id)
        if known is None or generation <= known.floor or 0 < known.ceiling <= generation:
            return []
        known.ceiling = generation
        return self._match_again()

    def place_message(self, message_id: str, generation: int) -> list[int]:
        """Note the generation of a message from a timeline; return the generations no longer
        explained."""
        known = self.message_named(message_id)
        if known is None or known.generation == generation:
            return []
        known.generation = generation
        return self._match_again()

    def is_known(self, message_id: str) -> bool:
        """Whether a client has sent this message here."""
        return self.message_named(message_id) is not None

    def exchange_at(self, generation: int) -> int:
        """Return the exchange with the message that a timeline has shown at this generation, or
        0."""
        return next(
            (
                each.exchanges[0]
                for each in self.messages
                if each.generation == generation and each.exchanges
            ),
            0,
        )

    def message_named(self, message_id: str) -> ClientMessage | None:
        """Return the message with this id, or None."""
        key = message_key(message_id) if message_id else -1
        return next((each for each in self.messages if each.key == key), None)

    def add_generations(self, generations: Iterable[int]) -> None:
        """Add missing generations, and match them with messages as far as possible."""
        for generation in generations:
            if generation not in self.missing:
                self.missing.append(generation)
                self._match_generation(generation, set())
        if len(self.missing) > MAX_NUMBERS:
            self.missing.sort()
            for dropped in self.missing[:-MAX_NUMBERS]:
                self.matches.pop(dropped, None)
            del self.missing[:-MAX_NUMBERS]

    def remove_generation(self, generation: int) -> bool:
        """Remove a generation that is no message's; return whether a message explained it."""
        if generation not in self.missing:
            return False
        self.missing.remove(generation)
        explained = self.matches.pop(generation, None) is not None
        if explained:
            self._match_again()
        return explained

    def explanation_of(self, generation: int) -> ClientMessage | None:
        """Return the message that explains a missing generation, or None."""
        key = self.matches.get(generation)
        return (
            None if key is None else next((each for each in self.messages if each.key == key), None)
        )

    def _match_again(self) -> list[int]:
        """Match all missing generations anew; return those that were explained and are not any
        more."""
        before, self.matches = self.matches, {}
        for generation in self.missing:
            self._match_generation(generation, set())
        return [generation for generation in before if generation not in self.matches]

    def _match_generation(self, generation: int, visited: set[int]) -> bool:
        """Find a message for a generation; the generation that has it may take another message
        (augmenting path)."""
        taken = {key: number for number, key in self.matches.items()}
        for each in self.messages:
            if each.key in visited or not each.can_have(generation):
                continue
            visited.add(each.key)
            holder = taken.get(each.key)
            if holder is None or self._match_generation(holder, visited):
                self.matches[generation] = each.key
                return True
        return False
