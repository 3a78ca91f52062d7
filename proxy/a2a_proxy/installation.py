"""How this copy of a2a-proxy was installed: by uv, pipx or pip, and the commands that start it, add
an extra to it and upgrade it."""

import os
import shutil
import sys
from pathlib import Path

_UVX_FOLDERS = ("archive-v", "environments-v")
"""Beginnings of the folders in uv's cache that hold the environments of `uvx`."""


def inspect_command() -> tuple[str, ...]:
    """Return the words that start the `a2a-inspect` of this copy: after `uvx` the shell does not
    find it."""
    return (
        ("uvx", "--from", "a2a-proxy", "a2a-inspect")
        if _is_uvx(Path(sys.prefix))
        else ("a2a-inspect",)
    )


def install_hint(extra: str) -> str:
    """Return the hint of an error about an extra that is not installed."""
    return f"install it: {install_command(extra)}"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the environment of this process, and keeps the
    others."""
    prefix = Path(sys.prefix)
    package = f"'a2a-proxy[{extra}]'"
    if (receipt := prefix / "uv-receipt.toml").exists():
        return f"uv tool install 'a2a-proxy[{','.join(sorted({*_uv_extras(receipt), extra}))}]'"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx runpip {prefix.name} install {package}"
    if _is_uvx(prefix):
        return f"uvx --from {package} {Path(sys.argv[0]).name} ..."
    return f"{_pip(prefix)} install {package}"


def upgrade_hint() -> str:
    """Return the hint of an error about a file that a newer version wrote."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").exists():
        return "upgrade: uv tool upgrade a2a-proxy"
    if (prefix / "pipx_metadata.json").exists():
        return f"upgrade: pipx upgrade {prefix.name}"
    if _is_uvx(prefix):
        return f"upgrade: uvx --from a2a-proxy@latest {Path(sys.argv[0]).name} ..."
    return f"upgrade: {_pip(prefix)} install -U a2a-proxy"


def _uv_extras(receipt: Path) -> list[str]:
    """Return the extras with which `uv tool` installed the package; none if the receipt has another
    form."""
    import tomllib  # needed for few messages, and every start would wait for it

    try:
        requirements = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
        return [
            extra
            for each in requirements
            if each["name"] == "a2a-proxy"
            for extra in each.get("extras", ())
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _is_uvx(prefix: Path) -> bool:
    return any(part.startswith(_UVX_FOLDERS) for part in prefix.parts)


def _pip(prefix: Path) -> str:
    """Return the command for pip: with its path, if the shell finds that of another environment."""
    program = prefix / "bin/pip"
    found = shutil.which("pip")
    if not program.exists() or (found and os.path.samefile(found, program)):
        return "pip"
    return str(program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program)
