"""`export otlp`: destinations and messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_inspect.commands.otlp import OtlpExportOptions, export_otlp
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from support_inspect import sample
from support_otlp import http_backend
from support_several import pair


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
    return sample(tmp_path / "run.a2a.db")


def test_matching_exchanges_are_sent(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with http_backend() as received:
        export_otlp(
            OtlpExportOptions(
                recording=recording, where="err", endpoint=received.endpoint, frames=True
            )
        )
    assert [span.name for span in received.spans()] == ["SendStreamingMessage"]
    address = received.endpoint.removeprefix("http://")
    assert capfd.readouterr().err == f"1 span and 3 log records sent to {address}\n"


def test_a_file_has_a_line_of_otlp_json(
    recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.otlp.jsonl"
    export_otlp(OtlpExportOptions(recording=recording, output=target))
    [line] = target.read_text().splitlines()
    assert len(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 3
    assert capfd.readouterr().err == f"3 spans written to {target}\n"
    with pytest.raises(UserError, match="exists"):
        export_otlp(OtlpExportOptions(recording=recording, output=target))


def test_the_redaction_policy_applies(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    export_otlp(OtlpExportOptions(recording=recording, output=Path("-"), redact=("metadata-only",)))
    output = capfd.readouterr().out
    assert "SendStreamingMessage" in output
    assert "Thinking" not in output


def test_mistakes_are_one_error_line(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")  # for so long it is tried
    for wrong, message in (
        (OtlpExportOptions(recording=recording), "--endpoint is missing"),
        (
            OtlpExportOptions(recording=recording, endpoint="x", output=tmp_path / "f"),
            "cannot be combined",
        ),
        (OtlpExportOptions(recording=recording, endpoint="ftp://x"), "is not an OTLP endpoint"),
        (
            OtlpExportOptions(recording=recording, where="task:nothing", output=tmp_path / "f"),
            "nothing matches",
        ),
        (
            OtlpExportOptions(recording=recording, endpoint="http://127.0.0.1:1"),
            "no answer from the OTLP backend 127.0.0.1:1: ",
        ),
    ):
        with pytest.raises(UserError, match=message) as error:
            export_otlp(wrong)
        assert error.value.hint


def test_missing_packages_are_named(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_proxy.telemetry.sdk.find_spec", lambda _: None)
    with pytest.raises(UserError, match="OpenTelemetry needs the extra otlp") as error:
        export_otlp(OtlpExportOptions(recording=recording, endpoint="localhost:4317"))
    assert error.value.hint == install_hint("otlp")


def test_several_recordings_are_exported_as_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = pair(tmp_path)
    target = tmp_path / "run.otlp.jsonl"
    export_otlp(
        OtlpExportOptions(
            recording=first, others=(second,), output=target, redact=("metadata-only",)
        )
    )
    spans = [
        span
        for line in target.read_text().splitlines()
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]
    assert spans[3]["links"][0]["spanId"] == spans[0]["spanId"]
    assert capfd.readouterr().err == f"5 spans written to {target}\n"
    export_otlp(OtlpExportOptions(recording=first, others=(second,), output=Path("-"), where="err"))
    assert capfd.readouterr().err == "1 span written to standard output\n"
    for more in ({"where": "task:nothing", "output": tmp_path / "f"}, {"unsent": True}):
        with pytest.raises(UserError, match=r"nothing matches|only with one recording"):
            export_otlp(OtlpExportOptions(recording=first, others=(second,), **more))
