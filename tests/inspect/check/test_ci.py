"""The GitHub action, the GitLab job and the pre-commit hooks of the manual parse, and call existing
commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support_cli import run_here

ROOT = Path(__file__).parents[3]
ACTION = ROOT / ".github/actions/a2a-check/action.yml"
MANUAL = ROOT / "proxy/a2a_proxy/manual/ci.md"
LOSSY, DEMO = ROOT / "recordings/lossy.a2a.jsonl", ROOT / "recordings/demo.a2a.jsonl"
SHIM = """#!/bin/sh
printf '%s\\n' "$@" '' >> "$CALLS"
case "$1" in check) exit "$CODE";; esac
"""
"""Stands in the place of `a2a-inspect`: writes down how it is called."""


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return found


def blocks() -> list[dict[str, Any]]:
    """The YAML blocks of the manual: the workflow, the GitLab job, the configuration of
    pre-commit."""
    return [
        yaml.safe_load(block)
        for block in re.findall(r"```yaml\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    ]


def steps(name: str) -> dict[str, Any]:
    return next(step for step in action()["runs"]["steps"] if step["name"] == name)


def called(folder: Path, script: str, code: int = 0, **environ: str) -> tuple[list[list[str]], int]:
    """How a script calls `a2a-inspect`, which exits with this code, and the script's own exit
    code."""
    shim, calls = folder / "bin" / "a2a-inspect", folder / "calls"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(SHIM)
    shim.chmod(0o755)
    calls.write_text("")
    env = {
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
        "CALLS": str(calls),
        "CODE": str(code),
        **environ,
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=env, check=False
    )
    return [
        each.split("\n") for each in calls.read_text().removesuffix("\n\n").split("\n\n") if each
    ], done.returncode


def inputs(folder: Path, **given: str) -> dict[str, str]:
    """The environment of the step `Check` as the action makes it of its inputs and their
    defaults."""
    known = {
        name: str(each.get("default", "")) for name, each in action()["inputs"].items()
    } | given
    made = {}
    for name, value in steps("Check")["env"].items():
        value = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: known[found[1]], value)
        made[name] = value.replace("${{ runner.temp }}", str(folder))
    assert not any("${{" in value for value in made.values())
    return made | {"GITHUB_OUTPUT": str(folder / "output")}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, 1),
        (
            {
                "fail-on": "never",
                "allow-incomplete": "true",
                "redact": "pii",
                "suppressions": "s.toml",
            },
            0,
        ),
    ],
    ids=["defaults", "all"],
)
def test_the_action_calls_existing_commands(
    given: dict[str, str], code: int, tmp_path: Path
) -> None:
    """The calls of its shell step, made: all files are there, and the exit code is that of
    `check`."""
    (tmp_path / "s.toml").write_text("")
    (tmp_path / "state").mkdir()
    recording = shutil.copy(
        LOSSY, tmp_path / 'of $(touch pwned) `touch pwned` "; touch pwned.a2a.jsonl'
    )
    given = {**given, "recording": str(recording)} | (
        {"suppressions": str(tmp_path / "s.toml")} if given else {}
    )
    calls, exited = called(tmp_path, steps("Check")["run"], code, **inputs(tmp_path, **given))
    assert exited == 0
    assert [each[0] for each in calls] == ["check", "check", "export", "export"]
    assert [run_here(tmp_path / "state", *each).code for each in calls] == [code, code, 0, 0]
    out = tmp_path / "a2a-check"
    assert sorted(path.name for path in out.iterdir()) == [
        "a2a.a2a.jsonl",
        "a2a.html",
        "a2a.junit.xml",
        "a2a.sarif",
    ]
    assert json.loads((out / "a2a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("given", ["", "some/where"])
def test_the_action_installs_its_own_version(given: str, tmp_path: Path) -> None:
    """The program of the version of the action, or the requested one, into an environment that the
    check uses."""
    python, venv = tmp_path / "bin" / "python3", tmp_path / "a2a-check-venv"
    python.parent.mkdir()
    python.write_text(
        '#!/bin/sh\n[ "$2" = venv ] && mkdir -p "$3/bin" && exec cp "$0" "$3/bin"\n'
        'printf %s "$5" > asked\n'
    )
    python.chmod(0o755)
    environ = {"PACKAGE": given, "GITHUB_ACTION_PATH": str(ACTION.parent), "VENV": str(venv)}
    assert called(tmp_path, steps("Install")["run"], **environ)[1] == 0
    assert (venv / "bin/python3").is_file()
    assert steps("Install")["env"]["VENV"] == steps("Check")["env"]["VENV"]
    asked = (tmp_path / "asked").read_text()
    assert (Path(asked).resolve() == ROOT) if not given else (asked == given)


def test_an_incomplete_capture_is_kept_and_fails(tmp_path: Path) -> None:
    """Code 3 goes through to the job; so does a name that looks like an option, and no word of it
    is run."""
    given = {
        "recording": "--json",
        "redact": "pii",
        "fail-on": "$(touch pwned)",
        "suppressions": "; touch pwned",
    }
    calls, exited = called(tmp_path, steps("Check")["run"], 3, **inputs(tmp_path, **given))
    assert exited == 0
    assert [each[-2:] for each in calls] == [["--", "--json"]] * 4
    assert [each[1:3] for each in calls[:2]] == [["--fail-on", "$(touch pwned)"]] * 2
    assert (tmp_path / "output").read_text() == "exit-code=3\n"
    assert called(tmp_path, steps("Verdict")["run"], 0, CODE="3")[1] == 3
    assert not (tmp_path / "pwned").exists()


def test_an_uncheckable_recording_fails_with_2(tmp_path: Path) -> None:
    """No other command runs; the verdict is 2, also if the step returned none."""
    calls, exited = called(
        tmp_path, steps("Check")["run"], 2, **inputs(tmp_path, recording="none.a2a.db")
    )
    assert (len(calls), exited) == (1, 0)
    assert (tmp_path / "output").read_text() == "exit-code=2\n"
    verdict = steps("Verdict")["run"]
    assert [called(tmp_path, verdict, 0, **env)[1] for env in ({"CODE": "2"}, {"CODE": ""})] == [
        2,
        2,
    ]


def test_the_action_uses_declared_inputs_and_steps() -> None:
    """Referenced inputs and steps exist; artifacts are kept also if the check failed."""
    text, declared = ACTION.read_text(), action()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(declared["inputs"])
    assert set(re.findall(r"steps\.([\w-]+)", text)) == {"check"}
    assert steps("Keep findings and recording")["if"] == "${{ always() }}"
    scripts = [step for step in declared["runs"]["steps"] if "run" in step]
    assert all(step.get("shell") == "bash" for step in scripts)
    assert not any(
        "${{" in step["run"] for step in scripts
    )  # inputs are for the environment, where nothing runs them
    (workflow, *_) = blocks()
    use = workflow["jobs"]["a2a"]["steps"][-1]
    assert use["uses"].split("@")[0].endswith(str(ACTION.parent.relative_to(ROOT)))
    assert set(use["with"]) <= set(declared["inputs"])
    assert set(re.findall(r"^\| `([\w-]+)` \|", MANUAL.read_text(), re.MULTILINE)) == set(
        declared["inputs"]
    )


def test_the_gitlab_job_calls_existing_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its script except the installation, with the verdict of `check` at the end."""
    (_, document, _) = blocks()
    job = document["a2a-check"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    calls, exited = called(tmp_path, script, 1)
    assert exited == 1
    shutil.copy(DEMO, tmp_path / "a2a.a2a.db")
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path)
    assert {run_here(tmp_path / "state", *each).code for each in calls} == {0}
    assert all((tmp_path / name).exists() for name in job["artifacts"]["paths"])
    assert job["artifacts"]["reports"]["junit"] in job["artifacts"]["paths"]


def test_the_pre_commit_hooks_are_those_of_the_manual() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (*_, document) = blocks()
    assert [each["id"] for each in hooks] == [each["id"] for each in document["repos"][0]["hooks"]]
    assert all(re.search(each["files"], "cassettes/story.a2a.jsonl") for each in hooks)


@pytest.mark.parametrize(
    ("hook", "secret", "code"), [("cassette-fmt", False, 0), ("cassette-scan", True, 1)]
)
def test_the_pre_commit_hooks_pass_and_refuse(
    tmp_path: Path, hook: str, secret: bool, code: int
) -> None:
    """On a sample, which has no secrets, and on a copy with one that `fmt` accepts."""
    entry = {
        each["id"]: each["entry"]
        for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    }
    words = entry[hook].split()[1:]
    cassette = tmp_path / "story.a2a.jsonl"
    shutil.copy(DEMO, cassette)
    assert run_here(tmp_path, *words, str(cassette)).code == 0
    if secret:
        text = cassette.read_text()
        assert "Book a table" in text
        cassette.write_text(text.replace("Book a table", "sk-ant-api03-" + "Zq7Lk2" * 8, 1))
        run_here(tmp_path, *entry["cassette-fmt"].split()[1:], str(cassette))
    assert run_here(tmp_path, *words, str(cassette)).code == code
