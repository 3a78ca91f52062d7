"""The wheel and the sdist: equal for every build, complete, and without what users do not need."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from fnmatch import fnmatch
from pathlib import Path

import pytest

from a2a_proxy import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WHEEL = f"a2a_proxy-{__version__}-py3-none-any.whl"
SDIST = f"a2a_proxy-{__version__}.tar.gz"
_SECONDS = 120
_KINDS = {".py", ".md", ".binpb", ".typed", ".js", ".css", ".html", ".json", ".1"}
"""Kinds of files in the wheel, besides those of its metadata and the examples to deploy."""


def build(source: Path, folder: Path) -> Path:
    """Build both packages into a folder, without an environment of their own, and return the
    folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=source, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built / SDIST) as archive:
        archive.extractall(folder, filter="data")
    return folder / SDIST.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def metadata(built: Path) -> Message:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(wheel.read(name))


@pytest.mark.parametrize("name", [WHEEL, SDIST])
def test_a_build_of_the_sdist_is_equal_to_the_first(
    name: str, built: Path, unpacked: Path, tmp_path: Path
) -> None:
    """Also in another folder, and with files of another age."""
    assert (build(unpacked, tmp_path) / name).read_bytes() == (built / name).read_bytes()


def test_the_wheel_has_what_users_need_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        names = wheel.namelist()
    package = [name for name in names if ".dist-info/" not in name]
    assert {Path(name).suffix for name in package if "/manual/deploy/" not in name} == _KINDS
    assert {
        name.partition("/")[0].removesuffix("-" + __version__ + ".data") for name in package
    } == {
        "a2a_inspect",
        "a2a_proto",
        "a2a_proxy",
    }
    assert [
        name
        for name in package
        if "/site/" in name or name.endswith(("_pb2.py", "a2a_proto/build.py"))
    ] == []
    assert {Path(name).name for name in names if "/man1/" in name} == {
        "a2a-inspect.1",
        "a2a-proxy.1",
    }
    for page in (ROOT / "proxy/a2a_proxy/manual").glob("*.md"):
        assert f"a2a_proxy/manual/{page.name}" in names


def test_the_sdist_has_every_file_of_the_repository(unpacked: Path) -> None:
    """Except the files of `.gitignore`. `tests/run` and its neighbours stay executable."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()] + [
        ".git",
        "PKG-INFO",
    ]
    for path in ROOT.iterdir():
        if not any(fnmatch(path.name, pattern) for pattern in ignored):
            assert (unpacked / path.name).exists(), (
                f"add {path.name} to the sdist in pyproject.toml"
            )
    for path in (unpacked / "tests").rglob("*"):
        assert (
            path.stat().st_mode & 0o777
            == (ROOT / path.relative_to(unpacked)).stat().st_mode & 0o755 | 0o644
        )


def test_the_version_and_the_owner_have_one_source(metadata: Message) -> None:
    assert metadata["Version"] == __version__
    urls = dict(value.split(", ", 1) for value in metadata.get_all("Project-URL", []))
    assert urls == PROJECT["project"]["urls"]
    texts = [ROOT / "pyproject.toml", *(ROOT / "proxy").rglob("*.md")]
    texts += [
        path
        for kind in ("*.yml", "*.md", "*.py", "release")
        for path in (ROOT / ".github").rglob(kind)
    ]
    owner = urls["Source"].split("/")[3]
    owned, left = (
        {
            path.relative_to(ROOT).as_posix()
            for path in texts
            if re.search(rf"\b{word}[/.]", path.read_text("utf-8"))
        }
        for word in (owner, "OWNER")
    )
    examples = {"proxy/a2a_proxy/manual/ci.md"}  # they have the reader's OWNER
    assert owned - examples == {"pyproject.toml"}
    assert left - owned <= examples  # the placeholder is replaced everywhere


def test_links_of_the_package_page_lead_to_this_version(metadata: Message) -> None:
    """The index shows the README, and has no other file of the repository."""
    page = str(metadata.get_payload())
    source = PROJECT["project"]["urls"]["Source"]
    links = [each for each in re.findall(r"\]\(([^)\s]+)\)", page) if not each.startswith("#")]
    assert len(links) > 40
    for link in links:
        assert link.startswith("https://"), link
        kind, path = re.sub(
            rf"^{re.escape(source)}/(blob|raw)/v{__version__}/", r"\1 ", link
        ).split(" ")
        assert (kind == "raw") == (Path(path).suffix in (".svg", ".png"))
        assert (ROOT / path.partition("#")[0]).exists(), path
