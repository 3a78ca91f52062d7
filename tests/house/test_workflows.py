"""The workflows and templates of `.github`: valid, pinned, of few permissions; their shell steps
call what exists."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support_cli import run_here

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path for path in (GITHUB / "workflows").glob("*.yml")}
TEMPLATES = [*(GITHUB / "ISSUE_TEMPLATE").glob("*.yml"), GITHUB / "PULL_REQUEST_TEMPLATE.md"]
_OWN = (".github/release", "tests/run", "tests/benchmarks/nightly")
"""Programs of the repository that workflows call."""
_SHIM = """#!/bin/sh
(printf '%s\\n' "$0" "$@"; echo) >> "$CALLS"
case "$*" in
    "inspect --format"*) echo host.test/owner/a2a-proxy@sha256:12 ;;
    login*) cat > token ;;
    *gh-pages*) exit 1 ;;
esac
"""
"""Stands in for a program: writes down how it was called. The first release has no branch of the
site yet."""
_WRITES = {
    ("release", "publish"): {"attestations", "id-token"},
    ("release", "image"): {"attestations", "id-token", "packages"},
    ("release", "site"): {"contents"},
    ("release", "notes"): {"contents"},
}
"""The jobs that may write, and what."""


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), yaml.BaseLoader)  # `on` is a word, not true
    return found


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, path in WORKFLOWS.items():
        for job, content in load(path)["jobs"].items():
            yield name, job, content


def step(workflow: str, job: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in load(WORKFLOWS[workflow])["jobs"][job]["steps"] if each.get("name") == name
    )
    return found


def calls(folder: Path, one: dict[str, Any], **environ: str) -> list[str]:
    """Run a shell step as GitHub does, with stand-ins for all programs; return the calls, one line
    each."""
    made = folder / "bin"
    made.mkdir()
    for program in (
        *(made / name for name in ("docker", "gh", "git", "mike", "python3")),
        *map(folder.joinpath, _OWN),
    ):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_SHIM)
        program.chmod(0o755)
    assert set(one.get("env", {})) == set(environ)
    env = {"PATH": f"{made}:{os.environ['PATH']}", "CALLS": str(folder / "calls"), **environ}
    env["GITHUB_OUTPUT"] = str(folder / "output")
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", one["run"]]
    subprocess.run(script, cwd=folder, env=env, check=True, timeout=60)
    found = (folder / "calls").read_text() if (folder / "calls").exists() else ""
    return [
        " ".join(each.removeprefix(f"{made}/").split("\n"))
        for each in found.removesuffix("\n\n").split("\n\n")
    ]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", list(WORKFLOWS.values())),
        ("github-actions", list(GITHUB.glob("actions/*/action.yml"))),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        (
            "github-issue-forms",
            [path for path in TEMPLATES if path.name in ("bug.yml", "feature.yml")],
        ),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE/config.yml"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_agree_with_the_published_schemas(schema: str, files: list[Path]) -> None:
    assert files
    check(schema, files)


def test_the_gitlab_job_of_the_manual_agrees_with_the_schema(tmp_path: Path) -> None:
    (job,) = re.findall(
        r"```yaml\n(a2a-check:.*?)```",
        (ROOT / "proxy/a2a_proxy/manual/ci.md").read_text(),
        re.DOTALL,
    )
    (tmp_path / "gitlab.yml").write_text(job)
    check("gitlab-ci", [tmp_path / "gitlab.yml"])


def check(schema: str, files: list[Path]) -> None:
    """Validate files by a schema that `check-jsonschema` has in its package, without network."""
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_are_pinned_by_commit() -> None:
    """Tags can be moved; the comment names the version. A workflow of this repository needs no
    pin."""
    for path in (*WORKFLOWS.values(), *GITHUB.glob("actions/*/action.yml")):
        for action, comment in re.findall(r"uses: (\S+)(.*)", path.read_text()):
            pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) and re.fullmatch(
                r" # v\d+(\.\d+)*", comment
            )
            assert pinned or action.startswith("./"), f"{path.name}: {action}{comment}"


def test_one_action_has_one_commit() -> None:
    texts = "".join(
        path.read_text() for path in (*WORKFLOWS.values(), *GITHUB.glob("actions/*/action.yml"))
    )
    found = {tuple(each.split("@")) for each in re.findall(r"uses: (\S+@\S+)", texts)}
    assert len({name for name, _ in found}) == len(found)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_only_reads(name: str) -> None:
    assert load(WORKFLOWS[name])["permissions"] == {"contents": "read"}


def test_few_jobs_write() -> None:
    """Jobs that write belong to the release, and check out no code of a pull request."""
    found = {
        (name, job): {
            kind for kind, access in content.get("permissions", {}).items() if access == "write"
        }
        for name, job, content in jobs()
        if "permissions" in content
    }
    assert found == _WRITES
    assert "pull_request_target" not in "".join(path.read_text() for path in WORKFLOWS.values())
    for name, job, content in jobs():
        assert "uses" in content or int(content["timeout-minutes"]) <= 180
        for each in content.get("steps", []):
            assert "${{" not in each.get("run", ""), (
                f"{name}: values belong into the environment, where nothing runs"
            )
            if "checkout@" in each.get("uses", ""):
                assert each["with"]["persist-credentials"] == ("true" if job == "site" else "false")


def test_every_shell_step_is_tested() -> None:
    """By the tests below."""
    named = {
        (name, job, each["name"])
        for name, job, content in jobs()
        for each in content.get("steps", [])
        if "run" in each
    }
    assert named == {
        ("ci", "package", "Package"),
        ("ci", "tests", "Tests"),
        ("nightly", "check", "Check"),
        ("nightly", "peers", "Peers"),
        ("release", "build", "Package"),
        ("release", "image", "Image"),
        ("release", "notes", "Release"),
        ("release", "publish", "Leave only the package"),
        ("release", "site", "Site"),
    }
    assert all(os.access(ROOT / program, os.X_OK) for program in _OWN)


def test_ci_runs_the_tests_and_builds_the_package(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert calls(tmp_path / "a", step("ci", "tests", "Tests")) == ["tests/run"]
    assert calls(tmp_path / "b", step("ci", "package", "Package")) == [
        ".github/release dist tests/house"
    ]
    assert (ROOT / "tests/house").is_dir()
    matrix = load(WORKFLOWS["ci"])["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix == {
        "os": ["ubuntu-latest", "macos-latest"],
        "python": ["3.11", "3.12", "3.13", "3.14"],
    }


def test_nightly_runs_every_long_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests/benchmarks")
    known = list(importlib.import_module("nightly").commands(1))
    assert load(WORKFLOWS["nightly"])["jobs"]["check"]["strategy"]["matrix"]["check"] == known
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert calls(tmp_path / "a", step("nightly", "check", "Check"), CHECK="soak") == [
        "tests/benchmarks/nightly soak"
    ]
    assert calls(tmp_path / "b", step("nightly", "peers", "Peers")) == [
        "tests/run -m soak tests/peers"
    ]


def test_a_tag_is_built_and_only_the_package_is_published(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    for name in ("a.whl", "a.tar.gz", "SHA256SUMS", "notes.md"):
        (tmp_path / "dist" / name).touch()
    assert calls(tmp_path, step("release", "build", "Package"), TAG="v1.2.3") == [
        ".github/release dist"
    ]
    subprocess.run(
        ["bash", "-e", "-c", step("release", "publish", "Leave only the package")["run"]],
        cwd=tmp_path,
        check=True,
    )
    assert {path.name for path in (tmp_path / "package").iterdir()} == {"a.whl", "a.tar.gz"}
    assert load(WORKFLOWS["release"])["on"] == {"push": {"tags": ["v*"]}}
    needs = {job: content.get("needs") for name, job, content in jobs() if name == "release"}
    assert needs == {
        "ci": None,
        "build": "ci",
        "publish": "build",
        "image": "publish",
        "site": "publish",
        "notes": "publish",
    }


def test_the_image_is_built_tried_and_pushed(tmp_path: Path) -> None:
    """The password is not an argument, which other users of the machine could read."""
    environ = {
        "ACTOR": "me",
        "REGISTRY": "host.test",
        "REPOSITORY": "Owner/a2a-proxy",
        "TAG": "v1.2.3",
        "TOKEN": "key",
    }
    assert calls(tmp_path, step("release", "image", "Image"), **environ) == [
        (
            "docker build --file proxy/a2a_proxy/manual/deploy/Dockerfile"
            " --tag host.test/owner/a2a-proxy:1.2.3 --tag host.test/owner/a2a-proxy:latest ."
        ),
        "docker run --rm --read-only host.test/owner/a2a-proxy:1.2.3 --version",
        "docker login --username me --password-stdin host.test",
        "docker push --all-tags host.test/owner/a2a-proxy",
        "docker inspect --format {{index .RepoDigests 0}} host.test/owner/a2a-proxy:1.2.3",
    ]
    assert (tmp_path / "token").read_text() == "key"
    assert (tmp_path / "output").read_text() == "name=host.test/owner/a2a-proxy\ndigest=sha256:12\n"
    assert (ROOT / "proxy/a2a_proxy/manual/deploy/Dockerfile").exists()


def test_the_site_of_a_version_is_pushed(tmp_path: Path) -> None:
    config = "--config-file proxy/a2a_proxy/manual/site/mkdocs.yml --push"
    assert calls(tmp_path, step("release", "site", "Site"), TAG="v1.2.3")[3:] == [
        "git fetch origin gh-pages:gh-pages",
        f"mike deploy {config} --update-aliases 1.2.3 latest",
        f"mike set-default {config} latest",
    ]
    assert (ROOT / "proxy/a2a_proxy/manual/site/mkdocs.yml").exists()


def test_the_release_has_notes_and_files(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    for name in ("a.whl", "a.tar.gz", "SHA256SUMS", "notes.md"):
        (tmp_path / "dist" / name).touch()
    environ = {"GH_REPO": "owner/a2a-proxy", "GH_TOKEN": "key", "TAG": "v1.2.3"}
    assert calls(tmp_path, step("release", "notes", "Release"), **environ) == [
        (
            "gh release create v1.2.3 --verify-tag --title "
            "a2a-proxy 1.2.3 --notes-file dist/notes.md"
            " dist/a.whl dist/a.tar.gz dist/SHA256SUMS"
        )
    ]


def test_templates_ask_for_an_excerpt_that_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their command, with the task of a recording in the place of theirs."""
    monkeypatch.chdir(tmp_path)
    recording = ROOT / "recordings/demo.a2a.jsonl"
    listed = [
        json.loads(line) for line in run_here(tmp_path, "ls", recording, "--json").out.splitlines()
    ]
    task = next(each["task_id"] for each in listed if each["task_id"])
    texts = [path.read_text() for path in TEMPLATES if path.name != "config.yml"]
    commands = [re.search(r"a2a-inspect (export jsonl [^`\n]*)", text) for text in texts]
    (command,) = {found and found[1] for found in commands}
    assert command
    words = command.replace("'", "").replace("10324f3c", task[:8]).split()
    assert run_here(tmp_path, *words, recording).code == 0
    assert run_here(tmp_path, "cassette", "scan", "excerpt.a2a.jsonl").code == 0
    excerpt = (tmp_path / "excerpt.a2a.jsonl").read_text()
    assert task in excerpt
    assert not [
        each["task_id"]
        for each in listed
        if each["task_id"] not in (task, "") and each["task_id"] in excerpt
    ]
