"""The floors of the house: static contracts are in pyproject (import-linter); these are seen at run
time."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CORE = (
    "a2a_proxy.model.values",
    "a2a_proxy.wire.connection",
    "a2a_proxy.protocol.conversation",
    "a2a_proxy.observer",
)
_HEAVY = (
    "aiohttp",
    "grpc",
    "sqlite_utils",
    "textual",
    "opentelemetry",
    "google.protobuf",
    "cryptography",
)


def _loaded(module: str) -> set[str]:
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", _CORE)
def test_the_pure_core_loads_no_io(module: str) -> None:
    """Importing a pure floor brings no event loop, no sockets and no database into the process.

    (hpack brings logging along; that nothing of ours uses it is in the static contract.)
    """
    assert _loaded(module) & {"asyncio", "socket", "ssl", "sqlite3", "subprocess"} == set()


@pytest.mark.parametrize("module", ["a2a_proxy.cli.main", "a2a_proxy.cli.run"])
def test_the_relay_starts_light(module: str) -> None:
    """The command line and the relay load none of the heavy libraries before they need them."""
    assert _loaded(module) & set(_HEAVY) == set()


@pytest.mark.parametrize("module", ["a2a_proxy.cli.main", "a2a_inspect.cli.main"])
def test_the_help_starts_light(module: str) -> None:
    """`--version` and `--help` load click and the definitions of options, and nothing that only
    commands need."""
    assert _loaded(module) & {"msgspec", "tomllib", "json", "difflib", *_HEAVY} == set()


def test_the_screen_opens_light() -> None:
    """The first rows of a recording are there before what decodes payloads, reads cassettes or
    explains rules is."""
    later = {
        "google.protobuf",
        "a2a_proxy.protocol.event",
        "a2a_proxy.recording.cassette.importer",
        "a2a_proxy.rules.define.catalogue",
    }
    assert _loaded("a2a_inspect.app") & later == set()


def test_the_proxy_loads_hooks_only_on_request() -> None:
    """Nor SQLite, nor what looks for installed packages, which takes its time."""
    loaded = _loaded("a2a_proxy.cli.run")
    assert not [
        name for name in loaded if name.startswith(("a2a_proxy.follower", "a2a_proxy.hooks"))
    ]
    assert loaded & {"sqlite3", "importlib.metadata"} == set()


def test_a_stdio_relay_starts_lighter_still() -> None:
    """A client waits for it before each conversation."""
    heavy = {
        "asyncio",
        "uvloop",
        "sqlite3",
        "ssl",
        "socket",
        "hpack",
        "httptools",
        "a2a_proto",
        *_HEAVY,
    }
    assert _loaded("a2a_proxy.cli.main, a2a_proxy.cli.stdio") & heavy == set()


def test_importing_the_package_loads_no_submodule() -> None:
    """`Recording` comes with SQLite and the decoders when it is asked for, and is what
    `a2a_proxy.api` has."""
    loaded = _loaded("a2a_proxy")
    assert loaded & {"sqlite3", "msgspec", "asyncio", *_HEAVY} == set()
    assert not [name for name in loaded if name.startswith("a2a_proxy.")]
    code = (
        "import a2a_proxy; from a2a_proxy.api import Recording; "
        "assert a2a_proxy.Recording is Recording"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
