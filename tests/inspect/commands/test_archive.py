"""`a2a-inspect archive`: its output."""

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

from a2a_inspect.commands.archive import (
    ArchiveOptions,
    download_recording,
    list_segments,
    upload_recording,
)
from a2a_proxy.capture.file_layout import STATE_VARIABLE
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.read.reader import Recording
from support_inspect import TASK, sample

NOTHING = dict.fromkeys(("since", "until", "task", "context", "trace"), "")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An archive that has one recording."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    (tmp_path / "archive").mkdir()
    url = (tmp_path / "archive").as_uri()
    upload_recording(sample(tmp_path / "r.a2a.db"), url, ArchiveOptions(archive_id="here"))
    return url


def test_put_reports_new_rows_and_nothing_on_repetition(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        upload_recording(tmp_path / "r.a2a.db", url, ArchiveOptions(archive_id="there"))

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("put 9 frames in 1 segment, ")
    assert first.endswith(f" as proxy there into {url}")
    assert second == f"{url} already has all of {tmp_path / 'r.a2a.db'}"


def test_ls_finds_by_task_and_time_and_verifies(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert list_segments(url, {**NOTHING, "task": TASK}, ArchiveOptions(as_json=True)) == 0
    [found] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["frames"], found["tasks"], found["agents"], found["proxy"]) == (
        9,
        1,
        ["agent:8000"],
        "here",
    )
    assert list_segments(url, {**NOTHING, "task": "other"}, ArchiveOptions()) == 0
    assert list_segments(url, {**NOTHING, "until": "2000-01-01"}, ArchiveOptions()) == 0
    first, asked, second, less = capsys.readouterr().out.splitlines()
    assert first == second == "0 segments, 0 frames, 0 B"
    assert asked.startswith("2 lists, 1 GET, ")
    assert less == "1 list, 0 GETs, 0 B"
    file = tmp_path / "archive" / found["key"]
    file.write_bytes(file.read_bytes()[:-1])
    assert list_segments(url, NOTHING, ArchiveOptions(verify=True)) == 1
    assert found["key"] in capsys.readouterr().err


def test_fetch_reports_rows_and_requests(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    download_recording(
        url, {**NOTHING, "task": TASK}, tmp_path / "back.a2a.db", ArchiveOptions(verbose=True)
    )

    output = capsys.readouterr()
    assert output.out.splitlines()[0].startswith(
        "fetched 3 exchanges with 9 frames from 1 segment into "
    )
    assert output.out.splitlines()[1].startswith(
        f"{output.err.count('list ')} lists, {output.err.count('get ')} GETs, "
    )
    with Recording(tmp_path / "back.a2a.db") as recording:
        assert recording.count_rows().frames == 9


def test_missing_files_are_reported(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    [file] = (tmp_path / "archive" / "frames").rglob("*.parquet")
    file.unlink()

    assert list_segments(url, NOTHING, ArchiveOptions()) == 0
    line, _, second_line, _ = capsys.readouterr().out.splitlines()
    assert line.endswith("  missing: frames")
    assert (
        second_line
        == "1 segment with missing files, perhaps deleted by a lifecycle rule of the bucket"
    )
    download_recording(url, {**NOTHING, "task": TASK}, tmp_path / "back.a2a.db", ArchiveOptions())
    second_line = capsys.readouterr().out.splitlines()[1]
    assert second_line.startswith(
        "missing in the archive, perhaps deleted by a lifecycle rule: frames/dt="
    )


def test_any_time_is_accepted(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one outside the range of the columns and days of an archive."""
    for word, since in (
        ("0001-01-01", True),
        ("10000000000000h", True),
        ("2300-01-01", False),
        ("9999-12-31", False),
    ):
        for name in ("since", "until"):
            far = {**NOTHING, name: word}
            there = (name == "since") is since
            capsys.readouterr()
            list_segments(url, far, ArchiveOptions(as_json=True))
            assert bool(capsys.readouterr().out) == there
            with (
                contextlib.nullcontext()
                if there
                else pytest.raises(UserError, match="has no frames of")
            ):
                download_recording(
                    url, far | {"task": TASK}, tmp_path / f"{word}.a2a.db", ArchiveOptions()
                )
        assert (tmp_path / f"{word}.a2a.db").exists()


def test_times_of_ls_are_accepted_to_the_ns(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    list_segments(url, NOTHING, ArchiveOptions(as_json=True))
    last = json.loads(capsys.readouterr().out.splitlines()[-1])["until"]
    at = re.sub(r"\d(?=Z)", lambda digit: str(int(digit[0]) + 1), last)

    for word, found in ((last, True), (at, False)):
        list_segments(url, {**NOTHING, "since": word}, ArchiveOptions(as_json=True))
        assert bool(capsys.readouterr().out) == found


def test_a_partially_uploaded_recording_is_not_reported_as_present(
    tmp_path: Path, url: str
) -> None:
    """The part has its session, to its end, under the same names."""
    download_recording(
        url,
        {**NOTHING, "until": "2027-01-15T08:00:01.5"},
        tmp_path / "part.a2a.db",
        ArchiveOptions(),
    )
    upload_recording(tmp_path / "part.a2a.db", url, ArchiveOptions(archive_id="other"))

    with pytest.raises(UserError, match="of a recording that had 6 fewer frames") as error:
        upload_recording(tmp_path / "r.a2a.db", url, ArchiveOptions(archive_id="other"))

    assert "--archive-id" in error.value.hint
    upload_recording(tmp_path / "part.a2a.db", url, ArchiveOptions(archive_id="here"))


def test_a_missing_extra_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("a2a_proxy.archive.")]:
        if name != "a2a_proxy.archive.errors":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    for ask in (
        lambda: list_segments(url, NOTHING, ArchiveOptions()),
        lambda: download_recording(
            url, {**NOTHING, "task": TASK}, tmp_path / "back.a2a.db", ArchiveOptions()
        ),
        lambda: upload_recording(tmp_path / "r.a2a.db", url, ArchiveOptions(archive_id="there")),
    ):
        with pytest.raises(
            UserError, match="needs the extra lake: pyarrow is not installed"
        ) as wrong:
            ask()
        assert "a2a-proxy[lake]" in wrong.value.hint


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "no filter given for the exchanges to fetch"),
        ({"since": "soon"}, "is not a time"),
        ({"task": "no"}, "has no frames of task no"),
    ],
)
def test_fetch_errors_have_hints(
    url: str, tmp_path: Path, words: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as wrong:
        download_recording(url, {**NOTHING, **words}, tmp_path / "back.a2a.db", ArchiveOptions())

    assert wrong.value.hint
    assert not (tmp_path / "back.a2a.db").exists()
