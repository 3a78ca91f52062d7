"""`a2a-inspect import`: its output, and errors with a hint each."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from support_cli import SECONDS, run_here
from support_packets import make_segments, read_pieces, write_capture

_SAMPLE = Path(__file__).parents[3] / "recordings" / "demo.a2a.jsonl"


def export(tmp_path: Path) -> Path:
    path = tmp_path / "story.har"
    assert run_here(tmp_path, "export", "har", _SAMPLE, "-o", path).code == 0
    return path


def test_the_output_names_counts_what_is_missing_and_the_next_command(tmp_path: Path) -> None:
    path = export(tmp_path)
    done = run_here(tmp_path, "import", path)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == f"imported {path}: 7 exchanges, 35 frames, 3 tasks; 1 finding"
    assert done.lines[1] == "the HAR file lacks:"
    assert "  bytes of framing" in done.lines
    assert done.lines[-1] == f"inspect it: a2a-inspect {tmp_path}/story.a2a.db"
    assert run_here(tmp_path, "check", tmp_path / "story.a2a.db").code == 0
    assert (
        "imported from a HAR file"
        in run_here(tmp_path, "check", tmp_path / "story.a2a.db", "--all").out
    )


@pytest.mark.parametrize("kind", ["har", "pcap"])
def test_a_pipe_is_copied_and_needs_a_name(tmp_path: Path, kind: str) -> None:
    """As of `import <(gunzip -c FILE)`, or a FIFO: it cannot be read twice."""
    path, fifo = tmp_path / "story.pcap", tmp_path / "fifo"
    path = (
        export(tmp_path)
        if kind == "har"
        else write_capture(path, make_segments(read_pieces("vendor")))
    )
    os.mkfifo(fifo)
    done = run_here(tmp_path, "import", fifo)
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            f"a2a-inspect: error: {fifo} is a pipe, so the recording needs a name",
            "a2a-inspect: hint: name it: --output FILE.a2a.db",
        ],
    )
    writer = threading.Thread(target=fifo.write_bytes, args=(path.read_bytes(),), daemon=True)
    writer.start()
    done = run_here(tmp_path, "import", fifo, "-o", tmp_path / "b.a2a.db")
    writer.join(SECONDS)
    assert (done.code, done.err) == (0, "")
    expected = run_here(tmp_path, "import", path).lines[0].replace(str(path), str(fifo))
    assert done.lines[0] == expected


def test_a_packet_capture(tmp_path: Path) -> None:
    """Nothing is missing, so nothing is listed."""
    path = write_capture(tmp_path / "story.pcap", make_segments(read_pieces("vendor")))
    done = run_here(tmp_path, "import", path)
    assert (done.code, done.err, len(done.lines)) == (0, "", 2)
    assert done.lines[0].startswith(f"imported {path}: ")
    assert "SendStreamingMessage" in run_here(tmp_path, "show", tmp_path / "story.a2a.db").out
    checked = run_here(tmp_path, "check", tmp_path / "story.a2a.db", "--all").out
    assert "imported from a packet capture" in checked
    assert "which lacks" not in checked


def test_redaction_options_apply(tmp_path: Path) -> None:
    target = tmp_path / "b.a2a.db"
    assert (
        run_here(
            tmp_path, "import", export(tmp_path), "-o", target, "--redact", "metadata-only"
        ).code
        == 0
    )
    assert "Evening: fado" not in run_here(tmp_path, "show", target, "-p").out


def test_an_existing_recording_is_kept(tmp_path: Path) -> None:
    path = export(tmp_path)
    (tmp_path / "story.a2a.db").write_text("mine")
    done = run_here(tmp_path, "import", path)
    assert done.code == 2
    assert "exists" in done.err
    assert "hint: name another file" in done.err
    assert (tmp_path / "story.a2a.db").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "error"), [(None, "cannot read"), ("[]", "no JSON object"), ("{}", "not a HAR")]
)
def test_other_files_are_refused_with_a_hint(text: str | None, error: str, tmp_path: Path) -> None:
    path = tmp_path / "other.har"
    if text is not None:
        path.write_text(text)
    done = run_here(tmp_path, "import", path)
    assert done.code == 2
    assert error in done.err
    assert "hint: " in done.err
    assert "Traceback" not in done.err
