"""Extensions of plug-ins: entry points and named objects, good ones and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.hooks.extensions import (
    EXTENSION_GROUP,
    EXTENSIONS_VARIABLE,
    load_extensions,
    usable_extensions,
)
from support_hooks import install

_CODE = """
from a2a_proxy.protocol.extensions import Extension

COURIER = Extension(name="courier", uris=("urn:courier:",), summarise=lambda payload: "a parcel")
LOOSE = Extension(name="loose", uris="urn:loose", summarise=str)
EMPTY = Extension(name="empty", uris=("urn:empty",), members=("",), summarise=str)
NUMBER = 1
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with extensions that can be imported."""
    (tmp_path / "couriers_of_a_test.py").write_text(_CODE)
    (tmp_path / "broken_couriers_of_a_test.py").write_text("raise OSError('no parcels')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(EXTENSIONS_VARIABLE, raising=False)
    return tmp_path


def test_the_user_names_an_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXTENSIONS_VARIABLE, " couriers_of_a_test:COURIER ,")
    (plugin,) = load_extensions()
    assert (plugin.reference, plugin.package, plugin.failure) == (
        "couriers_of_a_test:COURIER",
        "",
        "",
    )
    assert [each.name for each in usable_extensions([plugin])] == ["courier"]


def test_a_package_brings_an_extension(modules: Path) -> None:
    install(modules, "courier", "couriers_of_a_test:COURIER", group=EXTENSION_GROUP)
    (plugin,) = load_extensions()
    assert (plugin.reference, plugin.package) == (
        "couriers_of_a_test:COURIER",
        "hooked-package 1.2",
    )
    assert plugin.extension is not None


@pytest.mark.parametrize(
    ("reference", "failure"),
    [
        ("couriers_of_a_test", "write it as module:NAME"),
        ("couriers_of_a_test:NUMBER", "NUMBER is not an Extension"),
        ("couriers_of_a_test:LOOSE", "uris is not a tuple of texts that are not empty"),
        ("couriers_of_a_test:EMPTY", "members is not a tuple of texts that are not empty"),
        (
            "couriers_of_a_test:NOTHING",
            "AttributeError: module 'couriers_of_a_test' has no attribute 'NOTHING'",
        ),
        ("no_such_couriers:X", "ModuleNotFoundError: No module named 'no_such_couriers'"),
        ("broken_couriers_of_a_test:X", "OSError: no parcels"),
    ],
)
def test_a_plug_in_that_cannot_be_used_says_why(reference: str, failure: str) -> None:
    plugins = load_extensions(f"{reference},couriers_of_a_test:COURIER")
    assert [each.failure for each in plugins] == [failure, ""]
    assert [each.name for each in usable_extensions(plugins)] == ["courier"]
