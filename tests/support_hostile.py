"""Hostile recordings, each written by a function of its own: see `HOSTILE`."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from a2a_proxy.model.values import (
    ArtifactState,
    Changes,
    Connection,
    EventKind,
    Finding,
    FrameKind,
    Note,
    Severity,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import write_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.notes import store_notes
from a2a_proxy.recording.store.schema import SCHEMA_VERSION
from a2a_proxy.recording.store.zstd import make_compressor
from a2a_proxy.recording.write.writer import Writer
from support_inspect import MS, TASK, changes, exchange, frame, request, sample, status
from support_recording import STARTED, facts

EVIL = "\x1b]0;owned\x07\x9b31m\x1b[2J\u202e\u200b\ufeff\n\r\nerror: forged\x00\u2028\ud800"
"""Characters that control a terminal, reverse text, are invisible, begin a line, or cannot be
encoded."""
WORD = EVIL[:-3]
"""The same as a word of a command line."""

Made = Callable[[Path], Path]
"""Writes a recording into an empty folder and returns its path."""


def commands_of(command: click.Command, path: str = "") -> Iterator[str]:
    """Yield the words of each command below this one, such as `cassette fmt`; empty words for the
    command itself."""
    subcommands = command.commands.items() if isinstance(command, click.Group) else ()
    if not subcommands or getattr(command, "invoke_without_command", False):
        yield path
    for name, each in subcommands:
        yield from commands_of(each, f"{path} {name}".lstrip())


def assert_harmless(printed: str, command: object) -> None:
    """Fail if a character could act on a terminal, or hide in it, or if a text began a line of its
    own."""
    assert not {each for each in printed if not each.isprintable()} - {"\n"}, (command, printed)
    assert not [line for line in printed.split("\n") if line.startswith("error: forged")], (
        command,
        printed,
    )


def evil_texts(folder: Path) -> Path:
    """Put EVIL into every text that a peer, a name or a person can choose."""
    bad, data = EVIL, EVIL.encode(errors="replace")
    fields = ((b"Content-Type", data), (data, b"x"))
    call = exchange(
        1,
        operation=bad,
        method=bad,
        target=bad,
        authority=bad,
        error=bad,
        how=bad,
        half_close=bad,
        rpc_id=bad,
        request_headers=fields,
        response_headers=fields,
        trailers=fields,
        task_id=bad,
        context_id=bad,
        states=(bad,),
        traceparent=bad,
        sent_traceparent=bad,
        version_header=bad,
        extensions=bad,
        http_version=bad,
        redacted=(bad,),
    )
    ids = {"task_id": bad, "context_id": bad, "message_id": bad, "artifact_id": bad, "rpc_id": bad}
    said = json.dumps(
        {
            "result": {
                "artifactUpdate": {"taskId": bad, "artifact": {"parts": [{"text": bad}], bad: bad}}
            }
        }
    )
    rows = [
        request(1, bad),
        frame(
            1,
            1,
            said.encode(),
            event=EventKind.ARTIFACT,
            note=bad,
            framing=bad,
            redacted=(bad,),
            **ids,
        ),
        frame(1, 2, data, schema="text", kind=FrameKind.UNDECODABLE, note=bad),
        frame(1, 3, data, schema=bad, kind=FrameKind.EVENT, **ids),
        frame(1, 4, json.dumps([[bad, bad]]).encode(), schema="trailers", kind=FrameKind.END),
    ]
    place: dict[str, Any] = {"connection": 1, "exchange": 1, "task_id": bad}
    found = [
        Finding(bad, Severity.ERROR, STARTED, bad, seq=1, evidence={bad: bad, "path": bad}, **place)
    ]
    found.append(
        Finding(
            "A2A-GEN-001", Severity.WARNING, STARTED, bad, evidence={"value": bad}, connection=1
        )
    )
    artifact = ArtifactState(bad, bad, 1, 1, 5, False, STARTED, STARTED)
    task = Task(
        bad,
        bad,
        bad,
        bad,
        2,
        ((STARTED, 2),),
        STARTED,
        STARTED,
        artifacts=(artifact,),
        exchanges=(1,),
    )
    line = Connection(1, bad, bad, bad, STARTED, kind=bad, peer=bad, how=bad)
    path = folder / "evil.db"
    own = bad[:-1]  # the proxy's own text is valid Unicode
    made = Writer(path, facts(1, tool=own, command=(bad,), listens=(bad,), upstreams=(bad,)))
    made.write(rows, found, Changes([line], [call], [task]))
    made.finish(STARTED + 9 * MS, how="clean", complete=own)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        store_notes(db, 1, STARTED, [Note(own, STARTED, exchange=1, seq=1)])
    return path


def evil_name(folder: Path) -> Path:
    """A file whose name controls a terminal."""
    return sample(folder / f"{WORD}.db")


def large_payload(folder: Path) -> Path:
    """One event of 100 MB."""
    return _payload(folder, b'{"result":{"x":"' + b"a" * 100_000_000 + b'"}}')


def long_number(folder: Path) -> Path:
    """A number of 100,000 digits, as a value and as a JSON-RPC id."""
    digits = b"9" * 100_000
    return _payload(
        folder, b'{"id":' + digits + b',"result":{"n":' + digits + b"}}", rpc_id=digits.decode()
    )


def deep_json(folder: Path) -> Path:
    """JSON arrays nested 100,000 times."""
    return _payload(folder, b'{"result":' + b'{"a":[' * 50_000 + b"1" + b"]}" * 50_000 + b"}")


def deep_protobuf(folder: Path) -> Path:
    """Messages nested until no length fits."""
    data = b""
    for _ in range(5_000):
        size, prefix = len(data), b""
        while size > 127:
            prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
        data = b"\x1a" + prefix + bytes([size]) + data
    return _payload(folder, data, schema="google.protobuf.Struct")


def circles(folder: Path) -> Path:
    """Tasks that refer to each other and to themselves, and exchanges that are parents of each
    other."""
    path = folder / "circles.db"
    made = Writer(path, facts(1, listens=("127.0.0.1:9000",), upstreams=("agent:8000",)))
    names = ["t1", "t2", "t3"]
    spans = [f"00-{'a' * 32}-{number * 16}-01" for number in "123"]
    rows, calls, tasks = [], [], []
    for number, name in enumerate(names, 1):
        before = names[number - 2]
        said = {
            "messageId": name,
            "taskId": name,
            "referenceTaskIds": [name, before, *names],
            "parts": [{"text": "x"}],
        }
        sent = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendStreamingMessage",
            "params": {"message": said},
        }
        update = {
            "result": {
                "task": {
                    "id": name,
                    "contextId": before,
                    "history": [said],
                    "status": {"message": said},
                }
            }
        }
        rows.append(
            frame(
                number,
                0,
                json.dumps(sent).encode(),
                kind=FrameKind.REQUEST,
                direction=Direction.TO_AGENT,
            )
        )
        rows.append(
            frame(
                number,
                1,
                json.dumps(update).encode(),
                event=EventKind.TASK,
                task_id=name,
                context_id=before,
            )
        )
        calls.append(
            exchange(number, task_id=name, context_id=before, traceparent=spans[number - 2])
        )
        states = ((STARTED, 2), (STARTED, 2))
        tasks.append(
            Task("agent", name, before, "", 2, states, STARTED, STARTED, exchanges=(3, 2, 1, 1, 99))
        )
    made.write(rows, [], Changes(changes().connections, calls, tasks))
    made.finish(STARTED + 9 * MS)
    return path


def many_findings(folder: Path) -> Path:
    """10,000 findings about one frame."""
    path = sample(folder / "many.db", 1)
    made = Writer(path, facts(2))
    about: dict[str, Any] = {"connection": 1, "exchange": 1, "seq": 1, "task_id": TASK}
    found = [
        Finding("A2A-GEN-001", Severity.ERROR, STARTED, f"finding {n}", **about)
        for n in range(10_000)
    ]
    made.write([request(1), status(1, 1, "x")], found, changes(exchange(1)))
    made.finish(STARTED + MS)
    return path


def many_notes(folder: Path) -> Path:
    """2,000 notes, one of a megabyte."""
    path = sample(folder / "notes.db", 1)
    notes = [
        Note("n" * (1_000_000 if n == 5 else 10), STARTED, exchange=1, seq=n) for n in range(2_000)
    ]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db, db:
        store_notes(db, 1, STARTED, notes)
    return path


def missing_rows(folder: Path) -> Path:
    """Frames without exchange, connection, shape or text; findings, tasks and notes about missing
    rows."""
    return altered(
        folder,
        "DELETE FROM connection",
        "DELETE FROM exchange WHERE id % 2",
        "DELETE FROM text",
        "DELETE FROM ident",
        "UPDATE frame SET shape = 4711 WHERE seq = 1",
    )


def missing_sessions(folder: Path) -> Path:
    """Rows of a missing session."""
    return altered(folder, "DELETE FROM session")


def missing_payloads(folder: Path) -> Path:
    """No block contains the payloads of frames and exchanges."""
    return altered(folder, "DELETE FROM block", "DELETE FROM block_tail")


def damaged_blocks(folder: Path) -> Path:
    """Noise instead of compressed blocks."""
    return altered(folder, "UPDATE block SET data = randomblob(500)")


def bomb(folder: Path) -> Path:
    """Blocks of some KB that decompress to 10 GB."""
    frames_of_zeros = make_compressor()(bytes(64 << 20)) * 160
    return altered(folder, ("UPDATE block SET data = ?", frames_of_zeros))


def blob_bomb(folder: Path) -> Path:
    """The same in a part of a payload that is stored by its hash."""
    zeros = make_compressor()(bytes(64 << 20)) * 160
    return altered(
        folder,
        ("INSERT INTO blob VALUES (1, x'00', 5, 'zstd', ?)", zeros),
        "INSERT INTO piece SELECT id, 0, NULL, 1 FROM frame",
        "UPDATE shape SET flags = flags | 32",
    )


def piece_bomb(folder: Path) -> Path:
    """A payload of 3,000 pieces of a megabyte."""
    return altered(
        folder,
        ("INSERT INTO blob VALUES (1, x'00', 5, 'raw', ?)", bytes(1 << 20)),
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO piece SELECT (SELECT min(id) FROM frame), i, i, 1 FROM n",
        "UPDATE shape SET flags = flags | 32",
    )


def wild_addresses(folder: Path) -> Path:
    """Payloads at negative and at very large addresses."""
    return altered(
        folder,
        "UPDATE frame SET offset = -5, size = 9223372036854775807 WHERE seq = 0",
        "UPDATE frame SET offset = 9223372036854775807, size = -1 WHERE seq = 1",
        "UPDATE frame SET block = -1 WHERE seq = 2",
        "UPDATE exchange SET size = -7",
    )


def huge_numbers(folder: Path) -> Path:
    """The largest and the smallest number of each column."""
    return _everywhere(
        folder,
        "INTEGER",
        "CASE id % 2 WHEN 0 THEN 9223372036854775807 ELSE -9223372036854775808 END",
    )


def wrong_types(folder: Path) -> Path:
    """Text in columns of numbers: the tables are created again without types."""
    return _everywhere(folder, "INTEGER", "'\x1b[31mmany'", untyped=True)


def wrong_bytes(folder: Path) -> Path:
    """Bytes in columns of text."""
    return _everywhere(folder, "TEXT", "x'ff1b5b33316d00'", untyped=True)


def nulls(folder: Path) -> Path:
    """NULL in every column except the keys."""
    return _everywhere(folder, "", "NULL", untyped=True)


def wrong_json(folder: Path) -> Path:
    """Lists and objects that are other JSON, or no JSON."""
    return _everywhere(folder, "TEXT", "'{\"a\": [1, {}]'")


def odd_json(folder: Path) -> Path:
    """As `wrong_json`, but valid JSON."""
    return _everywhere(folder, "TEXT", "'[[{\"a\": 1}, null], 7]'")


def foreign(folder: Path) -> Path:
    """A database of another program."""
    with contextlib.closing(sqlite3.connect(folder / "foreign.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE frame (id INTEGER PRIMARY KEY, diary TEXT)")
        db.execute("INSERT INTO frame VALUES (1, 'mine')")
    return folder / "foreign.db"


def newer(folder: Path) -> Path:
    """A recording of a newer, unknown version."""
    return altered(folder, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def no_tables(folder: Path) -> Path:
    """A recording without its tables."""
    return altered(folder, "DROP TABLE exchange", "DROP TABLE frame", "DROP TABLE finding")


def endless_view(folder: Path) -> Path:
    """A view of endless rows instead of a table."""
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS id, i AS session FROM n"
    )
    return altered(folder, "DROP TABLE finding", f"CREATE VIEW finding AS {endless}")


def endless_column(folder: Path) -> Path:
    """A generated column that is computed from 90 MB when it is read."""
    return altered(
        folder,
        "ALTER TABLE exchange RENAME TO was",
        "CREATE TABLE exchange (id INTEGER PRIMARY KEY, connection INTEGER AS "
        "(length(zeroblob(90000000) || id)))",
        "INSERT INTO exchange (id) SELECT id FROM was",
    )


def trigger(folder: Path) -> Path:
    """A trigger that runs endlessly when a row is written."""
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    return altered(
        folder,
        *(
            f"CREATE TRIGGER t_{table}_{what} BEFORE {what} ON {table} BEGIN {endless}; END"
            for table in ("session", "note", "frame")
            for what in ("INSERT", "DELETE", "UPDATE")
        ),
    )


def truncated(folder: Path) -> Path:
    """A truncated recording."""
    path = sample(folder / "half.db", 300)
    os.truncate(path, path.stat().st_size // 2)
    return path


def zeros(folder: Path) -> Path:
    """Zero bytes."""
    path = folder / "zeros.db"
    path.write_bytes(bytes(1 << 20))
    return path


def noise(folder: Path) -> Path:
    """A recording whose pages are noise, except the first."""
    path = sample(folder / "noise.db", 300)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + (b"\xa5\x1b[31m\x00\xff" * (len(data) // 8))[: len(data) - 4096])
    return path


def strange_log(folder: Path) -> Path:
    """The write-ahead log of another file beside the recording."""
    path, other = sample(folder / "one.db", 3), folder / "two.db"
    made = Writer(other, facts(7))
    made.write([request(1)], changes=changes(exchange(1)))
    path.with_name("one.db-wal").write_bytes(other.with_name("two.db-wal").read_bytes())
    made.close()
    return path


def directory(folder: Path) -> Path:
    """A folder."""
    (folder / "folder.db").mkdir()
    return folder / "folder.db"


def pipe(folder: Path) -> Path:
    """A named pipe without a writer."""
    os.mkfifo(folder / "pipe.db")
    return folder / "pipe.db"


def link_to_itself(folder: Path) -> Path:
    """A link to itself."""
    (folder / "loop.db").symlink_to("loop.db")
    return folder / "loop.db"


def device(folder: Path) -> Path:
    """A device that returns bytes endlessly."""
    (folder / "zero.db").symlink_to("/dev/zero")
    return folder / "zero.db"


def cassette_of(made: Made, **edit: Any) -> Made:
    """Return a hostile recording converted to a cassette."""

    def written(folder: Path) -> Path:
        with Recording(made(folder)) as recording:
            write_cassette(recording, folder / "hostile.a2a.jsonl", **edit)
        return folder / "hostile.a2a.jsonl"

    written.__name__ = f"cassette_of_{made.__name__}"
    return written


def cassette_lines(name: str, *lines: str | bytes) -> Made:
    """Return a function that writes a cassette with these lines after a valid header."""

    def written(folder: Path) -> Path:
        (folder / "blobs").mkdir()
        os.mkfifo(folder / "blobs" / ("0" * 64))
        path = folder / "hostile.a2a.jsonl"
        head = {"uuid": "u", "tool": "t", "started": STARTED}
        first = json.dumps(
            {"cassette": "a2a", "version": 1, "tool": "t", "sessions": [head]},
            separators=(",", ":"),
        )
        data = [line if isinstance(line, bytes) else line.encode() for line in (first, *lines)]
        path.write_bytes(b"\n".join(data) + b"\n")
        return path

    written.__name__ = f"cassette_{name}"
    return written


def _payload(folder: Path, data: bytes, **more: Any) -> Path:
    path = folder / "payload.db"
    made = Writer(path, facts(1, listens=("127.0.0.1:9000",), upstreams=("agent:8000",)))
    rows = [
        request(1),
        frame(1, 1, data, event=EventKind.STATUS, task_id=TASK, **more),
        status(1, 2, "after it"),
    ]
    made.write(rows, changes=changes(exchange(1)))
    made.finish(STARTED + 9 * MS)
    return path


def altered(folder: Path, *statements: str | tuple[str, bytes]) -> Path:
    """Write a valid recording with tasks, findings and notes, then change it with SQL."""
    path = sample(folder / "altered.db", 4)
    made = Writer(path, facts(2, listens=("127.0.0.1:9000",), upstreams=("agent:8000",)))
    artifact = ArtifactState("a", "name", 1, 1, 5, False, STARTED, STARTED)
    task = Task(
        "agent",
        TASK,
        "c",
        "",
        2,
        ((STARTED, 2),),
        STARTED,
        STARTED,
        artifacts=(artifact,),
        exchanges=(1,),
    )
    found = [
        Finding(
            "A2A-GEN-001", Severity.ERROR, STARTED, "x", 1, 1, 1, TASK, evidence={"path": "$.a"}
        )
    ]
    made.write(
        [request(1), status(1, 1, "x")],
        found,
        Changes(changes().connections, [exchange(1)], [task]),
    )
    made.finish(STARTED + MS)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        store_notes(db, 1, STARTED, [Note("look", STARTED, exchange=1, seq=1)])
        for statement in statements:
            db.execute(
                *((statement,) if isinstance(statement, str) else (statement[0], (statement[1],)))
            )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _everywhere(folder: Path, kind: str, value: str, *, untyped: bool = False) -> Path:
    """Set `value` in every column of this type of every table, except the keys."""
    path = altered(folder)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA legacy_alter_table = ON")
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            if untyped:
                keys = ", ".join(column[1] for column in columns)
                db.execute(f"ALTER TABLE {table} RENAME TO was")
                db.execute(
                    f"CREATE TABLE {table} ({keys.replace('id,', 'id INTEGER PRIMARY KEY,', 1)})"
                )
                db.execute(f"INSERT INTO {table} SELECT * FROM was")
                db.execute("DROP TABLE was")
            for _, name, of, _, _, key in columns:
                if kind in of and not key and name not in ("session", "exchange"):
                    with contextlib.suppress(sqlite3.Error):
                        db.execute(
                            f"UPDATE {table} SET {name} = {value.replace('id %', 'rowid %')}"
                        )
    return path


_FRAME = (
    '{"frame":"event","connection":1,"exchange":1,"seq":0,'
    '"direction":"to_client","at":1,"start":0,"end":1,%s}'
)

HOSTILE: tuple[Made, ...] = (
    evil_texts,
    evil_name,
    long_number,
    deep_json,
    deep_protobuf,
    circles,
    many_findings,
    many_notes,
    missing_rows,
    missing_sessions,
    missing_payloads,
    damaged_blocks,
    bomb,
    blob_bomb,
    piece_bomb,
    wild_addresses,
    huge_numbers,
    wrong_types,
    wrong_bytes,
    nulls,
    wrong_json,
    odd_json,
    foreign,
    newer,
    no_tables,
    endless_view,
    endless_column,
    trigger,
    truncated,
    zeros,
    noise,
    strange_log,
    directory,
    pipe,
    link_to_itself,
    device,
    cassette_of(evil_texts),
    cassette_of(circles),
    cassette_of(deep_json),
    cassette_of(long_number),
    cassette_lines("deep", '{"exchange":1,"states":' + "[" * 100_000 + "]" * 100_000 + "}"),
    cassette_lines("digits", '{"exchange":' + "9" * 100_000 + "}"),
    cassette_lines(
        "wide_number",
        '{"exchange":' + "9" * 30 + ',"connection":1,"stream":1,"binding":"jsonrpc","started":1}',
    ),
    cassette_lines("types", '{"connection":{"a":1},"client":[],"opened":"now"}'),
    cassette_lines(
        "wrong_types_of_a_frame", _FRAME % '"task_id":[[]],"data":{"a":1}', '{"end":{}}'
    ),
    cassette_lines("a_blob_that_is_a_pipe", _FRAME % ('"blob":"' + "0" * 64 + '"')),
    cassette_lines("a_blob_elsewhere", _FRAME % '"blob":"../../../../etc/passwd"'),
    cassette_lines("evil", '{"\\u001b[31m":1}'),
    cassette_lines("no_json", b"\xff\xfe\x1b[31m\x00"),
    cassette_lines("no_end", '{"connection":1}'),
)
