"""Recorded conversations with random changes: the traffic that a fuzz test sends through the proxy.

Everything follows from a seed and the number of a connection, so that each connection can be
reproduced alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import ChunkKind, Direction
from support_conversation import Step
from support_mutations import SAMPLES, Talk, chunks, loaded
from support_ways import Way, to_absolute_form

Steps = list[Step]
Mutator = Callable[[random.Random, Steps], Steps]

MAX_BYTES = 1 << 20
"""Maximum size of one conversation after all changes, in bytes."""
_MAX_MUTATIONS = 6
_CARDS = frozenset({"GetAgentCard", "GetExtendedAgentCard"})
"""Operations whose bytes the proxy may change."""
_WHAT = {
    ChunkKind.DATA: "data",
    ChunkKind.EOF: "eof",
    ChunkKind.RESET: "reset",
    ChunkKind.LOG: "log",
}
_NUMBER = re.compile(rb"[0-9a-fA-F]+(?=\r\n)|\d+")
_LENGTH = re.compile(rb"\0\0[\0-\xff]{3}")
"""Bytes that can be a gRPC prefix, or the length in the head of an HTTP/2 frame."""
_HTTP2_HEAD = 9

FRAGMENTS = (
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b" ",
    b"\x7f\x80\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x1b[31m",
    b"data: ",
    b"data: {}\n\n",
    b"id: \0\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Encoding: gzip\r\n",
    b" folded\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"GET /tasks/1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    PREFACE,
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    b'{"a":' * 200,
    b"[" * 2000,
    b'"\\ud800"',
    b"1e999",
    b"\0\0\0\x04\0\0\0\0\0",  # SETTINGS
    b"\0\0\0\x04\x01\0\0\0\0",  # SETTINGS ACK
    b"\0\0\x06\x04\0\0\0\0\0\0\x01\0\0\0\0",  # HEADER_TABLE_SIZE 0
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff",  # the largest window
    b"\0\0\x08\x06\0\0\0\0\0pingping",
    b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\0",  # WINDOW_UPDATE of 0
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",  # RST_STREAM
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0",  # GOAWAY
    b"\0\0\0\x09\0\0\0\0\x01",  # CONTINUATION
    b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\x03\x10",  # PRIORITY of a stream on itself
    b"\0\0\x01\0\x08\0\0\0\x01\xff",  # DATA with more padding than there is
    b"\0\0\0\0\x01\0\0\0\x01",  # END_STREAM
    b"Content-Length: 99999999999\r\n\r\n",
    b"\x01\xff\xff\xff\xff",  # a compressed gRPC message of 4 GiB
    b"\0\0\0\0\0",
)
"""Bytes that a scanner may take for the beginning or the end of a message."""
_BYTES = (0, 1, 9, 10, 13, 32, 34, 58, 92, 123, 127, 128, 192, 255)
"""Bytes with a meaning in one of the formats."""


class Plan(msgspec.Struct):
    """The steps of one connection."""

    number: int
    sample: str
    """Names of its conversations."""
    changes: list[str]
    """Names of the mutators, in order."""
    steps: Steps
    pause: float = 0.0
    """Seconds for which both peers pause after each read."""
    way: Way = Way.PLAIN
    notifies: bool = True
    """Whether peers end TLS with close_notify."""


def way_of(seed: int, number: int, ways: Sequence[Way]) -> Way:
    """Return the way of this connection in the run of this seed."""
    return random.Random(f"{seed}/{number}/way").choice(ways)


def plan(
    seed: int, number: int, *, stdio: bool = False, way: Way = Way.PLAIN, authority: str = ""
) -> Plan:
    """Return the plan of this connection in the run of this seed; with `stdio`, of a session of an
    agent that is a child process. `authority` is the agent's, for requests in absolute form."""
    chance = random.Random(f"{seed}/{number}/{'stdio' if stdio else 'tcp'}")
    samples = pipe_conversations() if stdio else conversations()
    if way is Way.ABSOLUTE:
        samples = {name: steps for name, steps in samples.items() if not is_http2(steps)}
    name = chance.choice(sorted(samples))
    steps = list(samples[name])
    changes = []
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, _MAX_MUTATIONS))):
        mutator = chance.choice(_MUTATORS)
        steps = mutator(chance, steps)
        changes.append(mutator.__name__)
    if way is Way.TLS_BOTH and PREFACE.startswith(first_bytes(steps)):
        steps, changes = (
            list(samples[name]),
            [],
        )  # the proxy dials only after the client's first bytes
    if way is Way.ABSOLUTE:
        steps = [
            (what, to, to_absolute_form(data, authority) if to is Direction.TO_AGENT else data)
            for what, to, data in steps
        ]
    steps = bounded(steps)
    cut = chance.choice(_CUTS)
    changes.append(cut.__name__)
    steps = ended(chance, cut(chance, steps))
    pause = 0.001 if chance.random() < 0.02 else 0.0
    return Plan(number, name, changes, steps, pause, way, notifies=chance.random() < 0.8)


def first_bytes(steps: Steps) -> bytes:
    """Return the client's bytes before the first end, as many as a preface has at most."""
    found = b""
    for what, direction, data in steps:
        if what in ("eof", "reset") or len(found) >= len(PREFACE):
            break
        if what == "data" and direction is Direction.TO_AGENT:
            found += data
    return found[: len(PREFACE)]


def is_http2(steps: Steps) -> bool:
    """Return whether the client speaks HTTP/2."""
    return first_bytes(steps).startswith(PREFACE)


@cache
def conversations() -> dict[str, Steps]:
    """Return the conversation of each connection of the sample recordings, except those that carry
    agent cards."""
    found: dict[str, Steps] = {}
    for path in sorted(SAMPLES.glob("*.a2a.jsonl")):
        name = path.name.partition(".a2a")[0]
        talk = loaded(name)
        if any(each.facts.binding == "stdio" for each in talk.exchanges):
            continue
        talk.exchanges = [each for each in talk.exchanges if each.operation not in _CARDS]
        found |= {f"{name}#{number}": steps for number, steps in steps_of(talk).items()}
    return found


@cache
def pipe_conversations() -> dict[str, Steps]:
    """Return the bytes on stdin, stdout and stderr of the stdio agents in the sample recordings."""
    return {f"stdio#{number}": steps for number, steps in steps_of(loaded("stdio")).items()}


def steps_of(talk: Talk) -> dict[int, Steps]:
    """Return the steps of each connection, by its number."""
    found: dict[int, Steps] = {}
    for chunk in chunks(talk):
        if chunk.kind in _WHAT and (chunk.data or chunk.kind is not ChunkKind.DATA):
            found.setdefault(chunk.connection, []).append(
                (_WHAT[chunk.kind], chunk.direction, chunk.data)
            )
    return found


def bounded(steps: Steps) -> Steps:
    """Return the first steps, at most `MAX_BYTES` together."""
    left, found = MAX_BYTES, []
    for what, direction, data in steps:
        found.append((what, direction, data[:left]))
        left -= len(data)
        if left <= 0:
            break
    return found


def ended(chance: random.Random, steps: Steps) -> Steps:
    """Return the steps without those that cannot be sent: after the FIN of their side, or after a
    reset."""
    found: Steps = []
    finished = set()
    for what, direction, data in steps:
        if direction not in finished and (data or what in ("eof", "reset")):
            found.append((what, direction, data))
        if what == "reset":
            return found
        if what == "eof":
            finished.add(direction)
    what = "reset" if chance.random() < 0.1 else "eof"
    return [*found, (what, chance.choice(tuple(Direction)), b"")]


# --- mutators


def _changed(chance: random.Random, steps: Steps, change: Callable[[bytes], bytes]) -> Steps:
    """Return the steps with other bytes in one of them."""
    places = [place for place, step in enumerate(steps) if step[2]]
    if not places:
        return steps
    place = chance.choice(places)
    what, direction, data = steps[place]
    return [*steps[:place], (what, direction, change(data)), *steps[place + 1 :]]


def _range(chance: random.Random, size: int) -> tuple[int, int]:
    """Return a random range of at most that many bytes, usually a short one."""
    begin = chance.randrange(size + 1)
    longest = chance.choice((1, 4, 16, 256, size))
    return begin, min(size, begin + chance.randint(1, max(longest, 1)))


def flip_bits(chance: random.Random, steps: Steps) -> Steps:
    """Flip one to eight bits, anywhere in one step."""

    def change(data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
        return bytes(found)

    return _changed(chance, steps, change)


def set_bytes(chance: random.Random, steps: Steps) -> Steps:
    """Replace one to four bytes with bytes that have a meaning."""

    def change(data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            found[chance.randrange(len(found))] = chance.choice(_BYTES)
        return bytes(found)

    return _changed(chance, steps, change)


def insert_fragment(chance: random.Random, steps: Steps) -> Steps:
    """Insert bytes that have a meaning, anywhere or at the end of a line."""

    def change(data: bytes) -> bytes:
        lines = [match.end() for match in re.finditer(rb"\r?\n", data)]
        place = (
            chance.choice(lines)
            if lines and chance.random() < 0.5
            else chance.randrange(len(data) + 1)
        )
        return data[:place] + chance.choice(FRAGMENTS) + data[place:]

    return _changed(chance, steps, change)


def delete_range(chance: random.Random, steps: Steps) -> Steps:
    """Delete a range of bytes in the middle."""

    def change(data: bytes) -> bytes:
        begin, end = _range(chance, len(data))
        return data[:begin] + data[end:]

    return _changed(chance, steps, change)


def repeat_range(chance: random.Random, steps: Steps) -> Steps:
    """Repeat a range of bytes, up to 3,000 times."""

    def change(data: bytes) -> bytes:
        begin, end = _range(chance, len(data))
        times = min(chance.choice((1, 2, 50, 3000)), MAX_BYTES // (end - begin + 1))
        return data[:end] + data[begin:end] * times + data[end:]

    return _changed(chance, steps, change)


def truncate(chance: random.Random, steps: Steps) -> Steps:
    """Truncate a step; in one of two cases nothing follows it in its direction."""
    if not steps:
        return steps
    place = chance.randrange(len(steps))
    what, direction, data = steps[place]
    rest = steps[place + 1 :]
    if chance.random() < 0.5:
        rest = [step for step in rest if step[1] is not direction]
    return [*steps[:place], (what, direction, data[: chance.randrange(len(data) + 1)]), *rest]


def drop_step(chance: random.Random, steps: Steps) -> Steps:
    """Omit a step."""
    place = chance.randrange(len(steps) + 1)
    return steps[:place] + steps[place + 1 :]


def duplicate_step(chance: random.Random, steps: Steps) -> Steps:
    """Repeat a step, at once or later, up to 200 times."""
    if not steps:
        return steps
    place = chance.randrange(len(steps))
    times = min(chance.choice((1, 1, 5, 200)), MAX_BYTES // (len(steps[place][2]) + 1))
    later = chance.randint(place, len(steps))
    return steps[:later] + [steps[place]] * times + steps[later:]


def swap_steps(chance: random.Random, steps: Steps) -> Steps:
    """Swap two steps."""
    found = list(steps)
    if len(found) > 1:
        one, other = chance.sample(range(len(found)), 2)
        found[one], found[other] = found[other], found[one]
    return found


def turn_step(chance: random.Random, steps: Steps) -> Steps:
    """Send a step from the other side."""
    if not steps:
        return steps
    place = chance.randrange(len(steps))
    what, direction, data = steps[place]
    return [*steps[:place], (what, direction.other, data), *steps[place + 1 :]]


def change_number(chance: random.Random, steps: Steps) -> Steps:
    """Change a number in text: a content length, the size of a chunk, an id, a code."""

    def change(data: bytes) -> bytes:
        numbers = list(_NUMBER.finditer(data))
        if not numbers:
            return data
        match = chance.choice(numbers[: chance.choice((3, 10, len(numbers)))])
        text = match[0]
        values = [
            b"0",
            b"-1",
            b"1",
            b"+5",
            b"0x10",
            b"1_0",
            b"9" * 30,
            b"ffffffff",
            b"4294967296",
            b"",
            text + text[-1:],
        ]
        if text.isdigit():
            values += [b"%d" % (int(text[:18]) + step) for step in (-1, 1, 7)]
        return data[: match.start()] + chance.choice(values) + data[match.end() :]

    return _changed(chance, steps, change)


def change_length(chance: random.Random, steps: Steps) -> Steps:
    """Change a binary length: of an HTTP/2 frame or of a gRPC message."""

    def change(data: bytes) -> bytes:
        places = [match.start() for match in _LENGTH.finditer(data)] or [0]
        place = chance.choice(places) + chance.randrange(5)
        value = chance.choice(
            (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f", b"\x01", b"\0\0\x40", b"\xff")
        )
        return data[:place] + value + data[place + len(value) :]

    return _changed(chance, steps, change)


def change_frame(chance: random.Random, steps: Steps) -> Steps:
    """Change the type, the flags or the stream of an HTTP/2 frame."""

    def change(data: bytes) -> bytes:
        found = bytearray(data)
        heads = frame_heads(data)
        if heads:
            head, field = chance.choice(heads), chance.choice((3, 4, 5, 8))
            found[head + field] = chance.choice((0, 1, 2, 3, 4, 5, 8, 9, 0x20, 0x2D, 0x80, 0xFF))
        return bytes(found)

    return _changed(chance, steps, change)


def frame_heads(data: bytes) -> list[int]:
    """Return the positions of HTTP/2 frames, if these bytes contain any."""
    at = len(PREFACE) if data.startswith(PREFACE) else 0
    found = []
    while at + _HTTP2_HEAD <= len(data):
        found.append(at)
        at += _HTTP2_HEAD + int.from_bytes(data[at : at + 3])
    return found


def splice(chance: random.Random, steps: Steps) -> Steps:
    """Replace the rest of a conversation with the rest of another one."""
    other = chance.choice(list(conversations().values()))
    begin = 0 if chance.random() < 0.5 else chance.randrange(len(other) + 1)
    return steps[: chance.randrange(len(steps) + 1)] + other[begin:]


def splice_bytes(chance: random.Random, steps: Steps) -> Steps:
    """Insert a part of another conversation into the middle of a step."""
    other = [data for _, _, data in chance.choice(list(conversations().values())) if data]

    def change(data: bytes) -> bytes:
        piece = chance.choice(other) if other else b""
        begin, end = _range(chance, len(piece))
        place = chance.randrange(len(data) + 1)
        return data[:place] + piece[begin:end] + data[place:]

    return _changed(chance, steps, change)


def append(chance: random.Random, steps: Steps) -> Steps:
    """Append another conversation on the same connection."""
    other = chance.choice(list(conversations().values()))
    return [step for step in steps if step[0] == "data"] + other


def early_end(chance: random.Random, steps: Steps) -> Steps:
    """Insert a FIN or RST of one side in the middle."""
    place = chance.randrange(len(steps) + 1)
    what = chance.choice(("eof", "eof", "reset"))
    return [*steps[:place], (what, chance.choice(tuple(Direction)), b""), *steps[place:]]


_MUTATORS: tuple[Mutator, ...] = (
    flip_bits,
    set_bytes,
    insert_fragment,
    insert_fragment,
    delete_range,
    repeat_range,
    truncate,
    drop_step,
    duplicate_step,
    swap_steps,
    turn_step,
    change_number,
    change_number,
    change_length,
    change_frame,
    splice,
    splice_bytes,
    append,
    early_end,
)


# --- splitting into writes


def as_it_is(chance: random.Random, steps: Steps) -> Steps:
    """Return each step as one write."""
    return steps


def single_bytes(chance: random.Random, steps: Steps) -> Steps:
    """Write about 300 bytes one by one."""
    found: Steps = []
    left = 300
    for what, direction, data in steps:
        size = min(left, len(data))
        found += [(what, direction, data[at : at + 1]) for at in range(size)]
        left -= size
        if size < len(data) or not data:
            found.append((what, direction, data[size:]))
    return found


def at_random(chance: random.Random, steps: Steps) -> Steps:
    """Split each step into at most eight writes."""
    found: Steps = []
    for what, direction, data in steps:
        cuts = (
            sorted(chance.randrange(len(data)) for _ in range(chance.randint(0, 7))) if data else []
        )
        found += [
            (what, direction, data[a:b])
            for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)
        ]
    return found


def merged(chance: random.Random, steps: Steps) -> Steps:
    """Join consecutive steps of one side into one write."""
    found: Steps = []
    for what, direction, data in steps:
        if found and what == "data" and found[-1][:2] == ("data", direction):
            found[-1] = (what, direction, found[-1][2] + data)
        else:
            found.append((what, direction, data))
    return found


_CUTS: tuple[Mutator, ...] = (as_it_is, as_it_is, single_bytes, at_random, at_random, merged)
