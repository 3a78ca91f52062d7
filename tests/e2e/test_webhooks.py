"""Push notifications with `--webhooks`: SDK clients and agents notice nothing, and each delivery is
on its task."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Exchange, Severity
from a2a_proxy.recording.read.reader import Recording
from support_peers import OLD, Agent, agent, normalise, require_peers, run_client
from support_proxy import Proxy, running

pytestmark = pytest.mark.peers

AGENTS = {"sdk1": "sdk1", "sdk03": "sdk03", "js24": "sdk1", "0_1": "0_1", "0_2": "0_2"}
"""Kind of client -> kind of its agent."""
BINDINGS = ("jsonrpc", "rest", "grpc")
PAIRS = [(kind, binding) for kind in ("sdk1", "sdk03", "js24") for binding in BINDINGS]
PAIRS += [("0_1", "jsonrpc"), ("0_2", "jsonrpc")]


def free_port() -> int:
    """Return a port that the proxy can bind again after a restart."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port


def between(folder: Path, far: Agent, *words: str) -> contextlib.AbstractContextManager[Proxy]:
    folder.mkdir(exist_ok=True)
    return running(Proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target, *words))


def deliveries(path: Path) -> list[Exchange]:
    with Recording(path) as recording:
        return [
            row.exchange
            for row in recording.read_exchanges()
            if row.exchange.binding is Binding.WEBHOOK
        ]


def judged_calls(path: Path) -> Counter[tuple[str, Severity]]:
    """Return the rules of the findings about calls, not about deliveries."""
    with Recording(path) as recording:
        rows = recording.read_exchanges()
        calls = {
            (row.session, row.exchange.id)
            for row in rows
            if row.exchange.binding is not Binding.WEBHOOK
        }
        found = [
            row for row in recording.read_findings() if (row.session, row.finding.exchange) in calls
        ]
    return Counter((row.finding.rule, row.finding.severity) for row in found)


@pytest.mark.parametrize(("kind", "binding"), PAIRS)
def test_clients_notice_nothing(kind: str, binding: str, tmp_path: Path) -> None:
    """Their transcripts, with what their webhooks received, are those without the option; so are
    the findings about their calls."""
    require_peers(kind, AGENTS[kind])

    scenarios = ["push"] if kind in OLD else ["push", "webhook"]

    def run(base_url: str, target: str) -> Any:
        return normalise(asyncio.run(run_client(kind, binding, scenarios, base_url, target)))

    with agent(AGENTS[kind]) as far:
        with between(tmp_path / "without", far) as plain:
            direct = run(plain.base_url, plain.address)
            plain.stop()
        with between(tmp_path / "with", far, "--webhooks", "127.0.0.1:0") as one:
            relayed = run(one.base_url, one.address)
            one.stop()
    assert relayed == direct
    found = deliveries(one.recording)
    posts = [event for streams in relayed.values() for event in streams.get("webhook", [])]
    assert len(found) == len(posts)
    assert {(each.method, each.target, each.status) for each in found} <= {("POST", "/hook", 200)}
    with Recording(one.recording) as recording:
        assert len({row.task.agent for row in recording.read_tasks()}) == 1
        sent = {
            row.exchange.task_id
            for row in recording.read_exchanges()
            if row.exchange.operation.startswith("Send")
        }
        (session,) = recording.read_sessions()
    assert {each.task_id for each in found} <= sent - {""}
    assert (session.how, session.lost, session.edits >= 3) == ("clean", 0, True)
    assert judged_calls(one.recording) == judged_calls(plain.recording)


class Receiver:
    """A webhook that answers with these statuses, and then with the last of them."""

    def __init__(self, *statuses: int) -> None:
        self.posts: list[tuple[str, dict[str, str], Any]] = []
        receiver, left = self, list(statuses)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.posts.append(
                    (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                )
                self.send_response(left.pop(0) if len(left) > 1 else left[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.place}/hook?x=1"

    @contextlib.contextmanager
    def serving(self) -> Iterator[Receiver]:
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()


def call(one: Proxy | Agent, method: str, **params: Any) -> Any:
    """Call the agent by JSON-RPC, through a proxy or directly, and return the result."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    asked = urllib.request.Request(f"{one.base_url}/a2a/jsonrpc", body, fields)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)["result"]


def test_a_restart_of_the_proxy_loses_no_notification(tmp_path: Path) -> None:
    """A configuration made in one run of the proxy delivers in the next: each delivery is on its
    task, with the answer of the webhook, first an error. After a Delete nothing is left of it."""
    require_peers("sdk1")
    words = ("--webhooks", f"127.0.0.1:{free_port()}")
    folder = tmp_path / "state" / "webhooks"
    with agent("sdk1") as far, Receiver(500, 204).serving() as hook:
        with between(tmp_path, far, *words) as one:
            message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "input"}]}
            task = call(one, "SendMessage", message=message)["task"]["id"]
            config = {"taskId": task, "id": "hook-1", "url": hook.url, "token": "word"}
            made = call(one, "CreateTaskPushNotificationConfig", **config)
            assert (made["url"], made["token"]) == (hook.url, "word")
            one.stop()
        said = [line["message"] for line in one.said("warning")]
        assert [
            line
            for line in said
            if line.startswith("1 push notification configuration still leads here")
        ]
        (path,) = folder.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        one.recording.rename(tmp_path / "first.a2a")
        with between(tmp_path, far, *words) as two:
            more = {
                "messageId": "m-2",
                "taskId": task,
                "role": "ROLE_USER",
                "parts": [{"text": "input"}],
            }
            call(two, "SendMessage", message=more)
            (listed,) = call(two, "ListTaskPushNotificationConfigs", taskId=task)["configs"]
            assert listed["url"] == hook.url
            call(two, "DeleteTaskPushNotificationConfig", taskId=task, id="hook-1")
            two.stop()
        assert [*folder.iterdir()] == []
        assert not [line for line in two.said("warning") if "still lead" in line["message"]]
    assert len(hook.posts) > 1
    assert {
        (target, fields["host"], fields["x-a2a-notification-token"])
        for target, fields, _ in hook.posts
    } == {("/hook?x=1", hook.place, "word")}
    found = deliveries(two.recording)
    assert [each.status for each in found] == [500] + [204] * (len(hook.posts) - 1)
    assert {(each.task_id, each.authority) for each in found} == {(task, hook.place)}


def test_a_delivery_before_the_answer_is_on_its_task(tmp_path: Path) -> None:
    """A message whose answer waits for the task: its notifications are the first that the proxy
    sees of the task."""
    require_peers("sdk1")
    with (
        agent("sdk1") as far,
        Receiver(200).serving() as hook,
        between(tmp_path, far, "--webhooks", "127.0.0.1:0") as one,
    ):
        message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "input"}]}
        configuration = {"taskPushNotificationConfig": {"url": hook.url}}
        call(one, "SendMessage", message=message, configuration=configuration)
        one.stop()
    with Recording(one.recording) as recording:
        (task,) = [row.task for row in recording.read_tasks()]
    assert task.agent == f"127.0.0.1:{far.http}/a2a/jsonrpc"
    assert len(deliveries(one.recording)) == len(hook.posts) > 0


def test_configurations_are_set_back_at_the_end(tmp_path: Path) -> None:
    """With `--restore`, notifications reach the webhook after the proxy has ended."""
    require_peers("sdk1")
    with agent("sdk1") as far, Receiver(200).serving() as hook:
        with between(tmp_path, far, "--webhooks", "127.0.0.1:0", "--restore") as one:
            message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "input"}]}
            task = call(one, "SendMessage", message=message)["task"]["id"]
            call(
                one,
                "CreateTaskPushNotificationConfig",
                taskId=task,
                id="hook-1",
                url=hook.url,
                token="word",
            )
            one.stop()
        assert [line["message"] for line in one.said("note") if "set back" in line["message"]] == [
            "1 push notification configuration was set back to the client's webhook"
        ]
        assert not [line for line in one.said("warning") if "still lead" in line["message"]]
        (listed,) = call(far, "ListTaskPushNotificationConfigs", taskId=task)["configs"]
        assert (listed["id"], listed["url"], listed["token"]) == ("hook-1", hook.url, "word")
        more = {
            "messageId": "m-2",
            "taskId": task,
            "role": "ROLE_USER",
            "parts": [{"text": "input"}],
        }
        call(far, "SendMessage", message=more)
    assert hook.posts
    assert deliveries(one.recording) == []
