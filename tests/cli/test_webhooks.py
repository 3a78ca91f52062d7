"""What the user is told about webhooks."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import proxy_config
from a2a_proxy.cli.webhooks import describe_live_webhooks, describe_webhooks
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from support_cli import SECONDS, Agent, Proxy


def routes(*upstreams: str) -> list[Route]:
    return [Route(Listen("", 0), Upstream.parse(upstream)) for upstream in upstreams]


def test_an_agent_elsewhere_cannot_reach_a_listener_on_loopback() -> None:
    """A loud line with the option, unless another address was given."""
    found = [
        *describe_webhooks(
            ["127.0.0.1:9100", "[::1]:9100"], routes("localhost:1", "agent.example:80"), ""
        )
    ]
    assert [note.loud for note in found] == [False, True]
    assert found[0].text == "agents deliver push notifications to 127.0.0.1:9100, [::1]:9100"
    assert "agent.example:80 cannot reach --webhooks on 127.0.0.1:9100" in found[1].text
    assert found[1].hint.endswith("--webhooks 0.0.0.0:9100")
    (note,) = describe_webhooks(["127.0.0.1:9100"], routes("agent.example:80"), "https://p.example")
    assert note.text.endswith("127.0.0.1:9100, as https://p.example")
    assert [
        note.loud for note in describe_webhooks(["0.0.0.0:9100"], routes("agent.example:80"), "")
    ] == [False]


def test_a_url_on_loopback_leads_an_agent_elsewhere_to_itself() -> None:
    """A loud line for that agent only."""
    for url in ("http://localhost:9100", "http://[::1]:9100/hooks"):
        _, note = describe_webhooks(
            ["0.0.0.0:9100"], routes("localhost:1", "agent.example:80"), url
        )
        assert note.loud
        assert (
            note.text == f"--webhook-url {url} leads the agent agent.example:80 to its own machine"
        )
        assert note.hint.endswith("--webhook-url https://proxy.example")


def test_live_registrations_at_the_end(tmp_path: Path) -> None:
    """Those of this proxy's port, the named ones with their task."""
    registry = WebhookRegistry(tmp_path, lambda: 0.0)
    registry.port = 9100
    assert describe_live_webhooks(registry) is None
    registry.add("http://client.example/", "a:1", (), PushConfig("", "1"))
    note = describe_live_webhooks(registry)
    assert note is not None
    assert note.text.startswith("1 push notification configuration still leads here; ")
    assert note.hint == "delete those that agents still use: 1 that came with a message"
    for number in range(6):
        registry.add("http://client.example/", "a:1", (), PushConfig(f"t{number}", "2"))
    note = describe_live_webhooks(registry)
    assert note is not None
    assert note.text.startswith("7 push notification configurations still lead here; ")
    assert note.hint.startswith(
        "delete those that agents still use: 2 of task t0 at a:1, 2 of task t1 at a:1, "
    )
    assert note.hint.endswith("t4 at a:1, 1 that came with a message, and more")
    registry.port = 9200
    assert describe_live_webhooks(registry) is None


def create(address: str, url: str) -> None:
    """Create a push configuration; the agent's answer does not matter."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "CreateTaskPushNotificationConfig",
        "params": {"taskId": "t", "url": url},
    }
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    asked = urllib.request.Request(f"http://{address}/", json.dumps(body).encode(), fields)
    urllib.request.urlopen(asked, timeout=SECONDS).close()


@pytest.mark.parametrize(("words", "warns"), [((), True), (("--webhooks", "127.0.0.1:0"), False)])
def test_receivers_that_the_proxy_does_not_see(
    words: tuple[str, ...], warns: bool, proxy: Callable[..., Proxy], agent: Agent
) -> None:
    """One line for each, without the option; none for a webhook at a port of the proxy itself."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, *words)
    address = one.addresses()[0]
    for url in (
        "http://client.example/hook/secret",
        "http://client.example/other",
        f"http://{address}/",
    ):
        create(address, url)
    one.stop()
    line = (
        "a2a-proxy: notifications for http://client.example "
        "do not pass here; to record them: --webhooks :9100"
    )
    assert (one.out + one.err).splitlines().count(line) == int(warns)
    assert (one.out + one.err).count("do not pass here") == int(warns)


def test_agents_of_this_machine_need_no_url_beside_another_proxy() -> None:
    """They are dialled directly."""
    arguments = {"webhooks": ":0", "upstream_proxy": "http://proxy:3128"}
    config = proxy_config(ProxyArguments(listen=(":0",), upstream=("localhost:1",), **arguments))
    assert config.webhook_url == ""
    with pytest.raises(UserError, match="needs --webhook-url"):
        proxy_config(
            ProxyArguments(
                listen=(":0",),
                upstream=("localhost:1",),
                upstream_grpc=("agent.test:2",),
                **arguments,
            )
        )


def test_nothing_of_it_is_loaded_without_the_option() -> None:
    """A proxy without webhooks starts as before, and edits without looking for them."""
    modules = (
        "a2a_proxy.cli.run, a2a_proxy.cli.config, a2a_proxy.relay.edits.http1, "
        "a2a_proxy.relay.edits.http2"
    )
    code = (
        f"import sys, {modules}; "
        "print([n for n in sys.modules if 'push_config' in n or 'relay.webhooks' in n])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
