"""The grammar of faults: the verbs and their amounts, read word by word, whatever the form of the
places."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from a2a_proxy.model.errors import UserError

PlaceT = TypeVar("PlaceT")
_WORD = re.compile(r"@|[^\s@]+")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)")
_BARE_DURATION = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_UNITS = ("ms", "s")
_PERCENTAGE = re.compile(r"(\d{1,2}|100)%")
_GENERATION = re.compile(r"gen([+-][1-9]\d{0,8})")
_NUMBER = re.compile(r"[1-9]\d{0,8}")


class FaultError(UserError, ValueError):
    """A fault that cannot be read or injected. `str()` says why; if a word is wrong, with the text
    and a caret under the word."""

    def __init__(self, message: str, hint: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((message, *details)), hint, details=details)
        self.message = message


class FaultWords(msgspec.Struct, Generic[PlaceT], frozen=True):
    """A fault as its author wrote it, with a single space between words."""

    text: str
    verb: str
    """`drop`, `dup`, `swap`, `cut`, `stall` or `gen`."""
    place: PlaceT
    amount: float = 0.0
    """Percentage of a message that is still sent, duration of a stall in ns, or increase of a
    generation."""


class WordScanner:
    """The words of one fault, from left to right."""

    def __init__(self, text: str, examples: Mapping[str, str]) -> None:
        """Create the scanner. `examples` has a fault for each verb, of which errors show that of
        the verb. Raises FaultError if there are no words."""
        self.text = " ".join(text.split())
        self._words = [(found[0], found.start()) for found in _WORD.finditer(self.text)]
        self._next = 0
        if not self._words:
            raise FaultError("the fault is empty", f"for example: {next(iter(examples.values()))}")
        self.verb = "gen" if self.word.startswith("gen") else self.word
        """The first word, `gen` without its number."""
        self.example = f"for example: {examples[self.verb]}" if self.verb in examples else ""
        """A sentence that shows a fault with this verb; empty for a word that is no verb."""
        self._first_words = [example.partition(" ")[0] for example in examples.values()]

    @property
    def word(self) -> str:
        """The next word; empty at the end."""
        return self._words[self._next][0] if self._next < len(self._words) else ""

    def take_word(self) -> str:
        """Return the next word and continue after it."""
        word = self.word
        self._next += 1
        return word

    def expect_word(self, wanted: str) -> None:
        """Continue after the next word, which must be `wanted`. Raises FaultError."""
        if self.word != wanted:
            raise self.make_error(f'expected "{wanted}"')
        self._next += 1

    def take_match(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        """Continue after the next word and return its match with `pattern`. Raises FaultError that
        names `wanted`."""
        found = pattern.fullmatch(self.word)
        if found is None:
            raise self.make_error(f"expected {wanted}")
        self._next += 1
        return found

    def take_duration(self) -> float:
        """Continue after a duration such as `200ms` and return it in ns. Raises FaultError."""
        word = self.word
        if _BARE_DURATION.fullmatch(word):
            self._next += 1
            spaced = self.word in _UNITS
            hint = (
                f"without a space: {word}{self.word}"
                if spaced
                else f"in ms or s: {word}ms or {word}s"
            )
            raise self.make_error("the duration has no unit", hint, back=1)
        found = self.take_match(_DURATION, "a duration in ms or s")
        duration = float(found[1]) * (1e9 if found[2] == "s" else 1e6)
        if not duration:
            raise self.make_error("a duration must be more than 0", back=1)
        return duration

    def take_number(self, wanted: str) -> int:
        """Continue after a whole number of at least 1 and return it. Raises FaultError that names
        `wanted`."""
        return int(self.take_match(_NUMBER, wanted)[0])

    def expect_end(self) -> None:
        """Check that no word follows. Raises FaultError."""
        if self.word:
            raise self.make_error("the fault should end here")

    def make_verb_error(self) -> FaultError:
        """Return an error about a first word that is no verb."""
        near = difflib.get_close_matches(self.word.lower(), self._first_words, 1)
        *others, last = self._first_words
        hint = (
            f"did you mean {near[0]}?"
            if near
            else f"a fault begins with {', '.join(others)} or {last}"
        )
        return self.make_error("this is no fault", hint)

    def make_error(self, why: str, hint: str = "", *, back: int = 0) -> FaultError:
        """Return an error with a caret under the next word, or under the one `back` words before
        it. Without a hint it shows the example."""
        place = self._next - back
        column = (
            self._words[place][1] if place < len(self._words) else len(self.text) + bool(self.text)
        )
        width = len(self._words[place][0]) if place < len(self._words) else 1
        caret = f"    {' ' * column}{'^' * width}"
        return FaultError(why, hint or self.example, (f"    {self.text}", caret))


def read_fault(
    words: WordScanner, read_place: Callable[[WordScanner, int], PlaceT]
) -> FaultWords[PlaceT] | None:
    """Return the fault that begins with the next word, or None if that is not a verb of this table.

    `read_place` is called where a place is due, with the number of events that the place names.
    Raises FaultError.
    """
    verb, amount = words.verb, 0.0
    if verb not in ("drop", "dup", "swap", "cut", "stall", "gen"):
        return None
    if verb == "gen":
        amount = float(
            words.take_match(
                _GENERATION, "gen with a change of at least 1, such as gen+2 or gen-1"
            )[1]
        )
        words.expect_word("at")
    else:
        words.take_word()
    if verb == "stall":
        amount = words.take_duration()
        words.expect_word("before")
    place = read_place(words, 2 if verb == "swap" else 1)
    if verb == "cut" and words.word.endswith("%"):
        raise words.make_error('expected "@" before the percentage')
    if verb == "cut" and words.word == "@":
        words.take_word()
        amount = float(words.take_match(_PERCENTAGE, "a whole percentage from 0% to 100%")[1])
    words.expect_end()
    return FaultWords(words.text, verb, place, amount)
