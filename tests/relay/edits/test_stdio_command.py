"""Where a command begins after its environment assignments, and what a wrapped command runs."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from a2a_proxy.relay.edits.stdio_command import has_program, is_wrapped, wrap_command

_WORDS = ["a2a-proxy", "stdio", "--"]
_PROGRAM = "/opt/a b/a2a-proxy"
_MARK = "a2a-proxy stdio --"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("npx run my-agent@0.3.0", f"{_MARK} npx run my-agent@0.3.0"),
        ("  agent", f"  {_MARK} agent"),
        ("VAR=x agent --flag", f"VAR=x {_MARK} agent --flag"),
        ("A=1  B='a b' C=\"d e\"  agent", f"A=1  B='a b' C=\"d e\"  {_MARK} agent"),
        ("VAR=$(cat f) cmd --flag", f"VAR=$(cat f) {_MARK} cmd --flag"),
        ('V="$(echo "a )" \')\')" W=`id -u` X=${Y:-a b} cmd', None),
        (r"V=a\ b cmd", rf"V=a\ b {_MARK} cmd"),
        ("cmd V=x", f"{_MARK} cmd V=x"),
        ("'V'=x", f"{_MARK} 'V'=x"),
        ("agent 2>/dev/null", f"{_MARK} agent 2>/dev/null"),
        ("agent 'a;b' \"c|d\" e\\&f", f"{_MARK} agent 'a;b' \"c|d\" e\\&f"),
        ("cd /srv && A=1 ./agent", f"{_MARK} sh -c 'cd /srv && A=1 ./agent'"),
        ("a | b", f"{_MARK} sh -c 'a | b'"),
        ("A=1 exec agent --flag", f"{_MARK} sh -c 'A=1 exec agent --flag'"),
        ("executor -x", f"{_MARK} executor -x"),
        ("npx 'my agent", f"{_MARK} npx 'my agent"),
        ("stdio:///usr/bin/agent", "stdio:///opt/a%20b/a2a-proxy?stdio&--&/usr/bin/agent"),
        ("stdio:///agent?x%20y&z", "stdio:///opt/a%20b/a2a-proxy?stdio&--&/agent&x%20y&z"),
        ("stdio:///agent?", "stdio:///opt/a%20b/a2a-proxy?stdio&--&/agent&"),
    ],
)
def test_the_proxy_is_inserted_before_the_command(text: str, wanted: str | None) -> None:
    wrapped = wrap_command(text, _WORDS, _PROGRAM)
    assert wrapped == (wanted or f"{text.removesuffix('cmd')}{_MARK} cmd")
    assert is_wrapped(wrapped, _WORDS[:2])
    assert not is_wrapped(text, _WORDS[:2])


@pytest.mark.parametrize(
    ("text", "found"),
    [("A=1 b", True), ("b", True), ("stdio:///b", True), ("A=1", False), (" A='b c' ", False)],
)
def test_assignments_alone_have_no_program(text: str, found: bool) -> None:
    assert has_program(text) is found


@given(
    st.lists(
        st.tuples(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.text()), max_size=3
    ),
    st.lists(st.text(), min_size=1, max_size=4),
)
def test_a_command_keeps_its_words(assignments: list[tuple[str, str]], command: list[str]) -> None:
    """However they are quoted: assignments stay in front, then come the proxy's words, then the
    command's."""
    assume("=" not in command[0])  # which would be one assignment more
    assume(command[0] not in {".", "eval", "exec", "source"})  # which only a shell has
    front = [f"{name}={shlex.quote(value)}" for name, value in assignments]
    words = shlex.split(wrap_command(" ".join([*front, shlex.join(command)]), _WORDS, _PROGRAM))
    assert words == [*(f"{name}={value}" for name, value in assignments), *_WORDS, *command]


@given(st.text())
def test_any_text_is_wrapped_without_an_exception(text: str) -> None:
    assert _MARK in wrap_command(text, _WORDS, _PROGRAM) or text.lower().startswith("stdio:///")
    is_wrapped(text, _WORDS[:2])


@pytest.mark.parametrize(
    "text",
    [
        "A='x y' printenv A",
        "A=1 B=$(echo two words) sh -c 'echo $A $B'",
        "cd /; pwd",
        "A=1 exec printenv A",
    ],
)
def test_a_shell_runs_the_same_words(tmp_path: Path, text: str) -> None:
    """`env` takes the place of the proxy: it runs the words after it."""

    def ran(line: str) -> bytes:
        return subprocess.run(
            ["sh", "-c", line], capture_output=True, cwd=tmp_path, check=True
        ).stdout

    assert ran(wrap_command(text, ["env"], "/usr/bin/env")) == ran(text) != b""
