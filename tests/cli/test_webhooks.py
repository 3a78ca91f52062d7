"""What the user is told about webhooks."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.cli.webhooks import describe_live_webhooks, describe_webhooks
from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.webhooks.registry import WebhookRegistry


def routes(*upstreams: str) -> list[Route]:
    return [Route(Listen("", 0), Upstream.parse(upstream)) for upstream in upstreams]


def test_an_agent_elsewhere_cannot_reach_a_listener_on_loopback() -> None:
    """A loud line with the option, unless another address was given."""
    found = [*describe_webhooks(["127.0.0.1:9100", "[::1]:9100"], routes("localhost:1", "agent.example:80"), "")]
    assert [note.loud for note in found] == [False, True]
    assert found[0].text == "agents deliver push notifications to 127.0.0.1:9100, [::1]:9100"
    assert "agent.example:80 cannot reach --webhooks on 127.0.0.1:9100" in found[1].text
    assert found[1].hint.endswith("--webhooks 0.0.0.0:9100")
    (note,) = describe_webhooks(["127.0.0.1:9100"], routes("agent.example:80"), "https://p.example")
    assert note.text.endswith("127.0.0.1:9100, as https://p.example")
    assert [note.loud for note in describe_webhooks(["0.0.0.0:9100"], routes("agent.example:80"), "")] == [False]


def test_live_registrations_at_the_end(tmp_path: Path) -> None:
    """Those of this proxy's port, the named ones with their task."""
    registry = WebhookRegistry(tmp_path, lambda: 0.0)
    registry.port = 9100
    assert describe_live_webhooks(registry) is None
    registry.add("http://client.example/", "a:1", (), PushConfig("", "1"))
    note = describe_live_webhooks(registry)
    assert note is not None
    assert note.text.startswith("1 push notification configuration still leads here; ")
    assert note.hint == "delete those that agents still use"
    for number in range(6):
        registry.add("http://client.example/", "a:1", (), PushConfig(f"t{number}", "2"))
    note = describe_live_webhooks(registry)
    assert note is not None
    assert note.text.startswith("7 push notification configurations still lead here; ")
    assert note.hint.startswith("delete those that agents still use: 2 of task t0 at a:1, 2 of task t1 at a:1, ")
    assert note.hint.endswith("t4 at a:1 and more")
    registry.port = 9200
    assert describe_live_webhooks(registry) is None
