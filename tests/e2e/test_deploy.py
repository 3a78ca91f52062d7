"""The examples of `manual/deploy`: the steps of the Dockerfile and the commands of compose run as
processes of this machine, the manifests are valid by their schemas, and every option in them
exists.

Not run: anything that needs a base image, a container runtime, a cluster or a booted systemd.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import click
import kubernetes_validate
import pytest
import yaml

from a2a_proxy.cli.main import cli
from a2a_proxy.follower.metrics import server
from support_cli import SECONDS, environment, program, run, until
from support_otlp import grpc_backend

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "proxy/a2a_proxy/manual/deploy"
VOLUME = "/var/lib/a2a-proxy"
KUBERNETES = "1.32"

_AUDIT = """
import os, sys
def hook(event, args):
    if (
        event == "open" and isinstance(args[0], (str, bytes))
        and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    ):
        line = os.path.abspath(os.fsdecode(args[0]))
    elif event in ("os.mkdir", "os.rename", "sqlite3.connect"):
        line = os.path.abspath(os.fsdecode(args[0]))
    else:
        return
    fd = os.open(os.environ["WRITTEN"], os.O_WRONLY | os.O_APPEND)
    os.write(fd, os.fsencode(line) + b"\\n")
    os.close(fd)
def quiet(event, args, inside=[]):
    if not inside:
        inside.append(1)
        try:
            hook(event, args)
        finally:
            inside.clear()
sys.addaudithook(quiet)
"""
"""`sitecustomize` of the processes of the image: writes down what is opened for writing."""


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each as its name and the rest in one line."""
    text = re.sub(
        r"\\\n\s*",
        "",
        re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE),
    )
    return [
        (name, rest)
        for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)
    ]


def of(kind: str) -> list[str]:
    return [rest for name, rest in instructions() if name == kind]


class Image:
    """The folder that stands for the root of the image."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.volume = root / "var/lib/a2a-proxy"
        self.written = root / "written"
        self.owners: list[str] = []

    def at(self, text: str) -> str:
        """Return the text with the paths of the image below the root."""
        return re.sub(r"(?<![\w.])/(?=opt/|var/lib/|dist/)", f"{self.root}/", text)

    def environment(self, ports: dict[str, int], **more: str) -> dict[str, str]:
        """Return the environment of the image, with loopback and free ports in the place of its
        own."""
        image = dict(each.split("=", 1) for rest in of("ENV") for each in shlex.split(rest))
        for name, port in ports.items():
            assert image[name].startswith("0.0.0.0:")
            image[name] = f"127.0.0.1:{port}"
        image["PATH"] = image["PATH"].replace("$PATH", os.environ["PATH"])
        libraries = f"{self.root}/audit:{sysconfig.get_path('purelib')}"
        return {name: self.at(value) for name, value in image.items()} | {
            "PYTHONPATH": libraries,
            "WRITTEN": str(self.written),
            **more,
        }


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Run every RUN step in order. The package index is not asked: dependencies are those of the
    tests."""
    made = Image(tmp_path_factory.mktemp("image"))
    (made.root / "dist").mkdir()
    wheel = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(made.root / "dist"),
    ]
    subprocess.run(wheel, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    tools = made.root / "bin"
    tools.mkdir()
    (tools / "chown").write_text(f'#!/bin/sh\necho "$@" >> {made.root}/owners\n')  # only root may
    (tools / "chown").chmod(0o755)
    extras = dict(each.split("=", 1) for each in of("ARG"))["EXTRAS"]
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "EXTRAS": extras,
    }
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for step in of("RUN"):
        words = ["sh", "-euc", made.at(step)]
        env = {**os.environ, **offline, "PATH": path}
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, (step, done.stdout, done.stderr)
    (made.root / "audit").mkdir()
    (made.root / "audit/sitecustomize.py").write_text(_AUDIT)
    made.written.touch()
    return made


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def is_answering(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/.well-known/agent-card.json", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def served(folder: Path, port: int) -> Iterator[Path]:
    """Record the demo and serve it as an agent; yields the recording."""
    story = folder / "story.a2a.db"
    assert run(folder / "state", "a2a-proxy", "demo", "--record", story).code == 0
    words = [program("a2a-proxy"), "replay", str(story), "--listen", f"127.0.0.1:{port}"]
    agent = subprocess.Popen(words, env=environment(folder / "state"), stdout=subprocess.DEVNULL)
    try:
        until(lambda: is_answering(port))
        yield story
    finally:
        agent.terminate()
        agent.wait(SECONDS)


def test_the_image_runs_is_healthy_and_ends_in_order(image: Image, tmp_path: Path) -> None:
    """Its entry point and health check, with its environment; it writes below its volume only."""
    agent, listen, metrics = free_ports(3)
    env = image.environment(
        {"A2A_PROXY_LISTEN": listen, "A2A_PROXY_METRICS": metrics}, HOME="/nonexistent"
    )
    [entry], [health] = (of(kind) for kind in ("ENTRYPOINT", "HEALTHCHECK"))
    check = json.loads(health.partition("CMD ")[2].replace("9464", str(metrics)))
    [program_name] = json.loads(entry)
    command = [
        str(image.root / "opt/a2a-proxy/bin" / program_name),
        "--upstream",
        f"127.0.0.1:{agent}",
        "--quiet",
    ]

    def is_healthy() -> bool:
        check[0] = str(image.root / "opt/a2a-proxy/bin/python")
        proxied = env | {
            "http_proxy": "http://127.0.0.1:1"
        }  # docker sets it in containers: not for the check
        return (
            subprocess.run(
                check, env=proxied, capture_output=True, timeout=SECONDS, check=False
            ).returncode
            == 0
        )

    with served(tmp_path, agent) as story:
        assert not is_healthy()
        proxy = subprocess.Popen(
            command, env=env, cwd=image.volume, stderr=subprocess.PIPE, text=True
        )
        try:
            until(lambda: is_answering(listen))
            until(is_healthy)
            assert (
                run(tmp_path, "a2a-proxy", "drive", story, "--upstream", f"127.0.0.1:{listen}").code
                == 0
            )
        finally:
            proxy.terminate()
            _, errors = proxy.communicate(timeout=SECONDS)
    assert proxy.returncode == 0, errors
    assert "capture complete: yes" in errors
    [recording] = (image.volume / "recordings").glob("*.a2a.db")
    assert run(tmp_path, "a2a-inspect", "check", recording).code == 0
    written = {Path(line) for line in image.written.read_text().splitlines()}
    assert recording in written
    files = {
        path
        for path in written
        if not path.is_relative_to("/dev") and not path.is_relative_to("/proc")
    }
    assert {path for path in files if not path.is_relative_to(image.volume)} == set()


def test_the_image_belongs_to_its_user(image: Image) -> None:
    [user] = of("USER")
    assert (image.root / "owners").read_text().split() == [user, str(image.volume)]
    assert user.split(":")[0] != "0"
    assert of("VOLUME") == of("WORKDIR") == [VOLUME]
    assert of("STOPSIGNAL") == ["SIGTERM"]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored == ["*", f"!{of('COPY')[0].split()[0]}"]
    assert [each.rpartition(" ")[0] for each in of("COPY")] == [
        "dist/*.whl",
        "--from=build /opt/a2a-proxy",
    ]


def test_the_compose_file_is_valid() -> None:
    words = [
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        str(DEPLOY / "compose.yaml"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_services_of_compose_record_a_conversation(tmp_path: Path) -> None:
    """`record`, `agent`, `proxy` and `client` as processes; a collector of the tests stands for
    Jaeger."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    agent, listen, metrics = free_ports(3)
    with grpc_backend() as jaeger:
        places = {
            VOLUME: str(tmp_path),
            "0.0.0.0:8000": f"127.0.0.1:{agent}",
            "agent:8000": f"127.0.0.1:{agent}",
            "proxy:9000": f"127.0.0.1:{listen}",
            "http://jaeger:4317": jaeger.endpoint,
        }
        ports = {
            "A2A_PROXY_LISTEN": f"127.0.0.1:{listen}",
            "A2A_PROXY_METRICS": f"127.0.0.1:{metrics}",
        }
        env = environment(
            tmp_path / "state", OTEL_EXPORTER_OTLP_PROTOCOL="grpc", **ports
        )  # port 4317 means gRPC

        def start(name: str) -> subprocess.Popen[str]:
            words = [str(word) for word in services[name]["command"]]
            for place, here in places.items():
                words = [word.replace(place, here) for word in words]
            line = [program("a2a-proxy"), *words]
            return subprocess.Popen(
                line, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )

        record = start("record")
        record.communicate(timeout=SECONDS)
        assert record.returncode == 0
        running = [start("agent")]
        try:
            until(lambda: is_answering(agent))
            running.append(start("proxy"))
            until(lambda: is_answering(listen))
            client = start("client")
            out, _ = client.communicate(timeout=SECONDS)
            assert client.returncode == 0, out
        finally:
            ends = []
            for each in reversed(running):
                each.terminate()
                ends.append(each.communicate(timeout=SECONDS)[0])
    assert [each.returncode for each in running] == [0, 0]
    assert "capture complete: yes" in ends[0]
    assert len(jaeger.spans()) > 5


def options_of(words: list[str]) -> set[str]:
    return {word.split("=")[0] for word in words if word.startswith("--")}


def known_options() -> set[str]:
    return {name for each in cli.params if isinstance(each, click.Option) for name in each.opts}


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


@pytest.mark.parametrize("document", documents(), ids=lambda each: str(each["kind"]))
def test_the_manifests_are_valid(document: dict[str, Any]) -> None:
    """By the schemas of Kubernetes; unknown members are refused."""
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_a_wrong_manifest_is_refused() -> None:
    wrong = documents()[0]
    wrong["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_sidecar_uses_options_probes_and_ports_that_exist() -> None:
    deployment, service = documents()
    _, sidecar = deployment["spec"]["template"]["spec"]["containers"]
    assert options_of(sidecar["args"]) <= known_options()
    variables = {f"A2A_PROXY_{name[2:].replace('-', '_').upper()}" for name in known_options()}
    assert {each["name"] for each in sidecar["env"]} <= variables
    pages = Path(server.__file__).read_text()
    for probe in ("readinessProbe", "livenessProbe"):
        assert f'"{sidecar[probe]["httpGet"]["path"]}"' in pages
    exposed = {str(each["containerPort"]) for each in sidecar["ports"]}
    assert exposed == set(of("EXPOSE")[0].split())
    assert service["spec"]["ports"][0]["targetPort"] in {each["name"] for each in sidecar["ports"]}
    assert {each["mountPath"] for each in sidecar["volumeMounts"]} == {VOLUME, "/tmp"}
    context = sidecar["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == of("USER")[0]


def test_the_unit_starts_the_proxy_with_options_that_exist() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "a2a-proxy.service")
    words = unit["Service"]["ExecStart"].split()
    assert words[0].endswith("/a2a-proxy")
    assert options_of(words) <= known_options()
    assert (
        f"A2A_PROXY_STATE=/var/lib/{unit['Service']['StateDirectory']}"
        in unit["Service"]["Environment"]
    )
