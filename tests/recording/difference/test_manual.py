"""The manual's Python does what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import a2a_proxy

_SAMPLES = Path(__file__).parents[3] / "recordings"
_PAGE = (Path(a2a_proxy.__file__).parent / "manual" / "diff.md").read_text()


def test_the_manual_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    for name, sample in (("before", "sdk-1.x-rest"), ("after", "sdk-1.x-grpc")):
        shutil.copy(_SAMPLES / f"{sample}.a2a.jsonl", tmp_path / f"{name}.a2a.db")
    monkeypatch.chdir(tmp_path)

    exec(compile(example, "diff.md", "exec"), {})

    assert "call changed $.error unknown exception" in capsys.readouterr().out
