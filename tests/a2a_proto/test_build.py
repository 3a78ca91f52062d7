"""The checked-in descriptor sets are what the `.proto` files say."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import SCHEMA_SETS

build = pytest.importorskip("a2a_proto.build", reason="needs grpcio-tools")


@pytest.mark.parametrize("line", SCHEMA_SETS)
def test_descriptor_set_is_current(line: Any) -> None:
    """Compiling again gives the same bytes."""
    checked_in = (build.PACKAGE_DIR / SCHEMA_SETS[line].descriptor_path).read_bytes()
    assert build.compile_descriptor_set(line) == checked_in, (
        "the .proto files changed: run `python -m a2a_proto.build`"
    )


def test_main_repairs(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes every set again and lists those it changed."""
    for proto in build.PACKAGE_DIR.glob("*/*.proto"):
        copy = tmp_path / proto.relative_to(build.PACKAGE_DIR)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(proto.read_bytes())
    monkeypatch.setattr(build, "PACKAGE_DIR", tmp_path)
    build.main()
    assert capsys.readouterr().out.count(", changed") == len(SCHEMA_SETS)
    build.main()
    assert ", changed" not in capsys.readouterr().out
    assert (tmp_path / "v1/a2a.binpb").exists()


def test_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `.proto` file that does not compile is an error, not an empty set."""
    monkeypatch.setattr(build, "PACKAGE_DIR", tmp_path)
    with pytest.raises(ValueError, match="protoc refuses"):
        build.compile_descriptor_set("1.0")
