"""The URLs that an agent gets for the webhooks of its clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.relay.edits.edit import ConsoleNote, PushConfig
from a2a_proxy.relay.route import RouteError, Upstream
from a2a_proxy.relay.webhooks.agent_urls import (
    AgentUrls,
    WebhookAddress,
    delivery_sources,
    is_allowed_source,
    parse_webhook_url,
)
from a2a_proxy.relay.webhooks.registration import Registration
from a2a_proxy.relay.webhooks.registry import WebhookRegistry

AGENT = Upstream.parse("agent.example:8000")
HOOK = "http://client.example/hook"


class Bench:
    """The URLs of one agent, with the lines that they show."""

    def __init__(self, folder: Path, base: str = "http://10.0.0.1:9100") -> None:
        self.registry = WebhookRegistry(folder, lambda: 0.0)
        self.notes: list[ConsoleNote] = []
        self.kept: list[tuple[str, Upstream, bytes]] = []
        self.urls = AgentUrls(
            self.registry,
            AGENT.text,
            AGENT,
            base,
            (),
            self.notes.append,
            lambda receiver: receiver.origin.port == 9000,
            lambda *kept: self.kept.append(kept),
        )


def test_a_url_and_back(tmp_path: Path) -> None:
    """A deleted configuration is forgotten once an answer has named it."""
    bench = Bench(tmp_path, "https://proxy.example/hooks")
    ours = bench.urls.replace_url(HOOK, PushConfig("", "1"))
    assert ours is not None
    base, _, key = ours.rpartition("/")
    assert (base, len(bytes.fromhex(key))) == ("https://proxy.example/hooks", 16)
    bench.urls.keep_request(ours, b"POST")
    assert bench.kept == [(key, AGENT, b"POST")]
    assert bench.urls.restore_url(ours, PushConfig("t")) == HOOK
    assert bench.urls.restore_url(HOOK, PushConfig()) is None
    assert bench.notes == []
    bench.urls.forget_config(PushConfig("t", "1"))
    assert bench.urls.restore_url(ours, PushConfig()) is None


def test_a_refused_configuration_is_forgotten(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    ours = bench.urls.replace_url(HOOK, PushConfig())
    assert ours is not None
    bench.urls.discard_url(ours)
    assert len(bench.registry) == 0


def test_another_port_of_the_agent_knows_its_urls(tmp_path: Path) -> None:
    """An agent may have a port for each binding: a configuration made at one is read at another."""
    bench = Bench(tmp_path)
    ours = bench.urls.replace_url(HOOK, PushConfig())
    grpc = Upstream.parse("agent.example:50051")
    other = AgentUrls(
        bench.registry, grpc.text, grpc, "http://h", (), bench.notes.append, lambda _: False, print
    )
    assert ours is not None
    assert other.restore_url(ours, PushConfig()) == HOOK


def test_another_agent_learns_no_url(tmp_path: Path) -> None:
    """An agent that has the URL of another one does not get the client's from the proxy."""
    bench = Bench(tmp_path)
    ours = bench.urls.replace_url(HOOK, PushConfig())
    other = AgentUrls(
        bench.registry,
        "o.example",
        Upstream.parse("o.example"),
        "http://h",
        (),
        bench.notes.append,
        lambda _: False,
        print,
    )
    assert ours is not None
    assert other.restore_url(ours, PushConfig()) is None


def test_user_information_stays_with_the_agent(tmp_path: Path) -> None:
    """The agent makes `Authorization` of it."""
    ours = Bench(tmp_path).urls.replace_url("http://user:word@client.example/hook", PushConfig())
    assert ours is not None
    assert ours.startswith("http://user:word@10.0.0.1:9100/")


@pytest.mark.parametrize("url", ["", "no url", "http://localhost:9000/hook"])
def test_urls_that_stay(url: str, tmp_path: Path) -> None:
    """No URL, and one of the proxy itself: its notifications pass anyway."""
    bench = Bench(tmp_path)
    assert bench.urls.replace_url(url, PushConfig()) is None
    assert bench.notes == []


def test_a_listener_that_the_agent_cannot_reach(tmp_path: Path) -> None:
    """The URL stays, and a loud line says so without the URL's path, which may hold secrets."""
    bench = Bench(tmp_path, "")
    assert bench.urls.replace_url(HOOK, PushConfig()) is None
    (note,) = bench.notes
    assert note.loud
    assert note.text.startswith(
        "notifications for client.example:80 do not pass here: the agent agent.example:8000"
    )
    assert "--webhooks 0.0.0.0:PORT" in note.hint


def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "missing")
    assert bench.urls.replace_url(HOOK, PushConfig()) is None
    assert "cannot be stored" in bench.notes[0].text


@pytest.mark.parametrize(
    ("url", "base", "loud"),
    [
        (HOOK, "http://127.0.0.1:9100", True),
        (HOOK, "http://[fd00::1]:9100", True),
        ("https://8.8.8.8/", "http://10.0.0.1:9100", True),
        (HOOK, "https://proxy.example", False),
        (HOOK, "http://8.8.8.8:9100", False),
        ("http://127.0.0.1:1/", "http://127.0.0.1:9100", False),
        ("http://client.local/", "http://127.0.0.1:9100", False),
    ],
)
def test_a_public_webhook_with_a_private_base(
    url: str, base: str, loud: bool, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, base)
    assert bench.urls.replace_url(url, PushConfig()) is not None
    assert [note.loud for note in bench.notes] == [True] * loud


@pytest.mark.parametrize(
    ("address", "local", "base"),
    [
        (WebhookAddress(("127.0.0.1", "::1"), 9100), "127.0.0.1", "http://127.0.0.1:9100"),
        (WebhookAddress(("127.0.0.1", "::1"), 9100), "::1", "http://[::1]:9100"),
        (WebhookAddress(("127.0.0.1", "::1"), 9100), "10.0.0.7", ""),
        (WebhookAddress(("0.0.0.0",), 9100, tls=True), "10.0.0.7", "https://10.0.0.7:9100"),
        (WebhookAddress(("::",), 9100), "::ffff:10.0.0.7", "http://10.0.0.7:9100"),
        (
            WebhookAddress(("127.0.0.1",), 9100, url="https://p.example"),
            "10.0.0.7",
            "https://p.example",
        ),
    ],
)
def test_the_base_is_the_address_by_which_the_proxy_reaches_the_agent(
    address: WebhookAddress, local: str, base: str
) -> None:
    assert address.base_for(local) == base


def test_sources() -> None:
    """On loopback any loopback address, else those that belong to the agent."""
    assert delivery_sources("::ffff:10.0.0.7", {"agent.example", "10.0.0.8"}) == (
        "10.0.0.7",
        "10.0.0.8",
    )
    local = Registration("k", HOOK, "a:1", 1, 0.0, delivery_sources("127.0.0.1", set()))
    assert [
        is_allowed_source(local, each)
        for each in ("::1", "127.0.0.1", "::ffff:127.0.0.1", "10.0.0.7")
    ] == [
        *[True] * 3,
        False,
    ]
    assert is_allowed_source(Registration("k", HOOK, "a:1", 1, 0.0), "10.0.0.7")


@pytest.mark.parametrize(
    "text",
    [
        "proxy.example",
        "ftp://p/",
        "http://p/..",
        "http://p/a/%2E./b",
        "http://p/?x=1",
        "http://p/#x",
        "http://",
    ],
)
def test_bad_bases(text: str) -> None:
    with pytest.raises(RouteError) as caught:
        parse_webhook_url(text)
    assert caught.value.message.startswith(f"--webhook-url {text}")


def test_a_base_with_a_password_is_not_shown() -> None:
    with pytest.raises(RouteError, match="user information") as caught:
        parse_webhook_url("http://me:hunter2@p/")
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


def test_a_base_with_a_path() -> None:
    assert parse_webhook_url("https://proxy.example/hooks/") == "https://proxy.example/hooks"
