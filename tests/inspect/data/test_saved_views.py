"""The file of saved views."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.data.saved_views import read_columns, read_views, write_columns, write_views
from a2a_proxy.model.errors import UserError

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(names.filter(lambda name: name != "columns"), names, max_size=4))
def test_views_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, views: dict[str, str]
) -> None:
    """Any name, any expression, in their order; the folder is made."""
    path = tmp_path_factory.mktemp("views") / "new" / "views.toml"
    assert read_views(path) == {}
    write_views(path, views)
    assert list(read_views(path).items()) == list(views.items())
    assert [each.name for each in path.parent.iterdir()] == ["views.toml"]


def test_columns_and_views_share_the_file(tmp_path: Path) -> None:
    """Writing one keeps the other; without columns the file has none; no view takes their name."""
    path = tmp_path / "views.toml"
    assert read_columns(path) == []
    write_columns(path, ["ttfe", '$.a["b, c"]'])
    write_views(path, {"slow": "slow:2s"})
    assert (read_columns(path), read_views(path)) == (["ttfe", '$.a["b, c"]'], {"slow": "slow:2s"})
    with pytest.raises(UserError, match='cannot be named "columns"'):
        write_views(path, {"columns": "err"})
    write_columns(path, [])
    assert path.read_text() == '"slow" = "slow:2s"\n'
    path.write_text('columns = "err"\n')
    assert (read_columns(path), read_views(path)) == ([], {"columns": "err"})
    with pytest.raises(UserError, match='cannot be named "columns"'):
        write_columns(path, ["ttfe"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "cannot be read"),
        ("a = 3", "a is not a filter"),
        ("columns = [3]", "a column is not a text"),
    ],
)
def test_an_invalid_file_is_one_error_line(tmp_path: Path, text: str, words: str) -> None:
    """One line says so."""
    path = tmp_path / "views.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_views(path)
    with pytest.raises(UserError, match="cannot be written"):
        write_views(Path("/proc/self/nosuch/views.toml"), {})
