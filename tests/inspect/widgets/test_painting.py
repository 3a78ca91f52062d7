"""Parts of widgets that need no screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from a2a_inspect.data.source import ExchangeStream
from a2a_inspect.widgets.columns import ListColumn, columns_for_width, fit_text
from a2a_inspect.widgets.detail import FIRST_BYTES, _decode_payload_lines, paint_json
from a2a_inspect.widgets.facts import fact_lines, header_lines, paint_artifact, paint_facts
from a2a_inspect.widgets.finding_lines import finding_lines
from a2a_inspect.widgets.text_view import _wrap_line
from a2a_proxy.model.values import Connection, ConnectionTls, Finding, FrameKind, Severity
from a2a_proxy.model.wire import ClientProcess, TlsFacts
from a2a_proxy.recording.read.rows import ExchangeRow
from a2a_proxy.rules.define.catalogue import all_rules
from support_inspect import MS, exchange, frame, live, request
from support_recording import STARTED

texts = st.text(max_size=40) | st.text(alphabet="ab 漢é\x1b\u202e\u0301", max_size=40)


@given(texts, st.integers(0, 30), st.booleans(), st.booleans())
def test_a_cell_has_its_width_and_no_control_character(
    text: str, width: int, right: bool, tail: bool
) -> None:
    """Whatever a peer sends: wide, combining, control."""
    cell = fit_text(text, width, right=right, tail=tail)
    assert cell_len(cell) == width
    assert cell.isprintable()


def test_a_long_cell_shows_that_it_is_cut() -> None:
    """At its end, or at its beginning where the end matters."""
    assert fit_text("working", 5) == "work…"
    assert fit_text("working > completed", 10, tail=True) == "…completed"
    assert fit_text("7", 3, right=True) == "  7"


def test_columns_are_dropped_by_rank_and_share_the_width() -> None:
    """What may go goes, the highest rank first; the rest is spread."""
    columns = [
        ListColumn("a", 5, str),
        ListColumn("b", 5, str, drop=1),
        ListColumn("c", 5, str, drop=2, grow=1),
        ListColumn("d", 5, str, grow=3),
    ]
    assert [(c.title, width) for c, width in columns_for_width(columns, 34)] == [
        ("a", 5),
        ("b", 5),
        ("c", 7),
        ("d", 11),
    ]
    assert [(c.title, width) for c, width in columns_for_width(columns, 20)] == [
        ("a", 5),
        ("b", 5),
        ("d", 6),
    ]
    assert [c.title for c, _ in columns_for_width(columns, 3)] == ["a", "d"]


@given(texts, st.integers(8, 40))
def test_wrapping_loses_nothing(line: str, width: int) -> None:
    """The rows of a line are the line, and each fits."""
    rows = list(_wrap_line(0, line, width))
    assert "".join(line[first:last] for _, first, last, _ in rows) == line
    assert all(cell_len(line[first:last]) + indent <= width for _, first, last, indent in rows)
    assert rows or not line


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        (
            '  "name": "text",',
            [("  ", ""), ('"name"', "name"), (": ", ""), ('"text"', "string"), (",", "")],
        ),
        ('"size": -3,', [('"size"', "name"), (": ", ""), ("-3", "number"), (",", "")]),
        ("  true", [("  ", ""), ("true", "word")]),
        ('    "a: \\"b",', [("    ", ""), ('"a: \\"b"', "string"), (",", "")]),
        ("}", [("}", "")]),
    ],
)
def test_json_is_painted(line: str, runs: list[tuple[str, str]]) -> None:
    """Names, strings, numbers and words differ."""
    marks = paint_json(line)
    ends = [*(begin for begin, _ in marks[1:]), len(line)]
    painted = [(line[begin:end], name[6:]) for (begin, name), end in zip(marks, ends, strict=True)]
    assert [run for run in painted if run[0]] == runs


def test_trailers_are_shown_as_fields() -> None:
    """Not as the JSON that they are stored as; what cannot be read has a word about it."""
    end = frame(
        1,
        1,
        b'[["grpc-status","5"],["grpc-message","\\u001b[2J"]]',
        kind=FrameKind.END,
        schema="trailers",
    )
    assert _decode_payload_lines(end, live(1), FIRST_BYTES) == [
        "grpc-status: 5",
        "grpc-message: ␛[2J",
    ]
    broken = frame(1, 1, b'[["grpc-st', kind=FrameKind.END, schema="trailers")
    assert "cannot be decoded" in _decode_payload_lines(broken, live(1), FIRST_BYTES)[0]


def test_a_truncated_payload_has_a_note() -> None:
    """Before what is there of it."""
    cut = frame(1, 1, b"half a", schema="text", truncated=True, size=70_000)
    assert _decode_payload_lines(cut, live(1), FIRST_BYTES) == ["(first 6 B of 68.4 KiB)", "half a"]


def test_unknown_facts_are_left_out() -> None:
    """An open exchange has no end; a frame that the proxy made and redacted says both."""
    ours = request(1, "Hello")
    lines = fact_lines(ExchangeStream(ExchangeRow(1, 1, live(1)), 1), ours)
    assert not [line for line in lines if line.startswith(("closed", "redacted", "created by"))]
    marked = frame(1, 0, b"x", ours=True, redacted=("$.token",), began=STARTED)
    lines = fact_lines(ExchangeStream(ExchangeRow(1, 1, live(1)), 1), marked)
    assert [line.split(None, 1)[1] for line in lines if line.startswith("redacted")] == ["$.token"]
    assert [line for line in lines if line.startswith("created by")]


def test_headers_of_an_open_exchange() -> None:
    """What has not come is said to be missing yet; bytes that are no UTF-8 are escaped."""
    waiting = live(1, status=0, response_headers=(), request_headers=((b"X", b"\xff\x07"),))
    assert header_lines(waiting) == [
        "REQUEST",
        "POST /rpc HTTP/1.1",
        r"X: \xff␇",
        "",
        "RESPONSE",
        "none yet",
    ]


def test_facts_show_both_time_origins() -> None:
    """A frame of the agent counts from the exchange's first byte and from the end of its
    request."""
    call = exchange(1, request_ended=STARTED + 1000 * MS + 30 * MS)
    process = ClientProcess(71, "planner\x1b", (8001, 8002))
    tls = ConnectionTls(TlsFacts("TLSv1.3", "AES", "h2", "other\x1b"))
    line = Connection(1, "c", "l", "u", STARTED, lost_bytes=1, client_process=process, tls=tls)
    lines = fact_lines(ExchangeStream(ExchangeRow(1, 1, call), 2, line), frame(1, 1, b"{}"))
    assert next(each for each in lines if each.startswith("last byte")).endswith(", +100 ms")
    assert "after the request +70 ms" in lines
    assert "not captured      1 byte" in lines
    assert "client's process  planner␛ (pid 71), listens on 8001, 8002" in lines
    assert "client's TLS      TLSv1.3, AES, h2; server name other␛" in lines
    assert not [
        each
        for each in fact_lines(ExchangeStream(ExchangeRow(1, 1, call), 2), request(1))
        if "after the" in each
    ]


def test_facts_of_a_live_stream() -> None:
    """Which payload it carries and who ended first; its answer has no request's end to count
    from."""
    call = exchange(1, request_ended=STARTED + 1030 * MS, live_payload="bidi", half_close="client")
    lines = fact_lines(ExchangeStream(ExchangeRow(1, 1, call), 2), frame(1, 1, b"{}"))
    assert "live payload      bidi" in lines
    assert "half-closed first client" in lines
    assert not [each for each in lines if each.startswith("after the request")]


def test_a_rule_is_explained_once() -> None:
    """Every finding has its own evidence; those of the frame come first."""
    places = ({"path": "id"}, {"path": "id", "value": "null"})
    found = [
        Finding("A2A-SCH-001", Severity.ERROR, STARTED, "no `id`", 1, 1, evidence=each)
        for each in places
    ]
    found.append(Finding("A2A-SCH-001", Severity.ERROR, STARTED, "of this frame", 1, 1, seq=2))
    lines = [line.strip() for line in finding_lines(found, 2)]
    assert lines[0] == "ABOUT THIS FRAME"
    assert lines[2] == "error A2A-SCH-001 frame 2: of this frame"
    rule = all_rules()["A2A-SCH-001"]
    assert lines[3] == f"{rule.title} ({rule.section})"
    assert lines[4].startswith(rule.description[:40])
    rest = [line for line in lines[lines.index("ABOUT THE EXCHANGE") + 1 :] if line]
    assert rest == [
        "error A2A-SCH-001 no `id`",
        "at id",
        "error A2A-SCH-001 no `id`",
        "at id; found: null",
    ]
    assert finding_lines([], None) == ["(no findings about this exchange)"]


def test_artifact_text_is_not_painted_as_a_name() -> None:
    """Only the facts have a name that stands back; a chunk more than are told is none of the
    text."""
    text = "  Morning: the castle before the crowds"
    assert paint_artifact(text) == [(0, "")]
    assert paint_artifact("  ALL OF IT") == [(0, "")]
    for line in ("ARTIFACT", "name              plan", "                  and 3 more chunks"):
        assert paint_artifact(line) == paint_facts(line)
    assert (
        paint_artifact("name              plan")
        != paint_artifact("ARTIFACT")
        != paint_artifact(text)
    )
