"""Registered webhooks in the state directory."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.webhooks import registry as module
from a2a_proxy.relay.webhooks.registration import LIFETIME_SECONDS, Registration
from a2a_proxy.relay.webhooks.registry import LEFT_FILE_SECONDS, MOST_LOOKUPS, WebhookRegistry

HOOK, AGENT = "http://client.example/hook", "agent.example:80"


class Clock:
    """A time that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def add(
    registry: WebhookRegistry,
    config: PushConfig = PushConfig(),  # noqa: B008
    url: str = HOOK,
) -> Registration:
    registration = registry.add(url, AGENT, ("127.0.0.1",), config)
    assert registration is not None
    return registration


def test_a_registration_survives_a_restart(tmp_path: Path) -> None:
    """Its file can be read by this user only, and has 128 random bits for a name."""
    registry = WebhookRegistry(tmp_path, Clock())
    one, two = add(registry), add(registry)
    assert len({one.key, two.key}) == 2
    assert {len(bytes.fromhex(path.name)) for path in tmp_path.iterdir()} == {16}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    again = WebhookRegistry(tmp_path, Clock())
    again.load()
    assert again.find(one.key) == one
    assert {each.key for each in again.list_live()} == {one.key, two.key}


def test_the_key_of_another_proxy_is_found(tmp_path: Path) -> None:
    """Two proxies share a state directory; what one registers, the other knows."""
    one, two = WebhookRegistry(tmp_path, Clock()), WebhookRegistry(tmp_path, Clock())
    registration = add(one)
    assert two.find(registration.key) == registration
    assert two.find("0" * 32) is None
    assert two.find("../" + registration.key) is None


def test_it_is_forgotten_after_thirty_days(tmp_path: Path) -> None:
    clock = Clock()
    registry = WebhookRegistry(tmp_path, clock)
    registration = add(registry)
    clock.now += LIFETIME_SECONDS
    assert registry.find(registration.key) == registration
    clock.now += 1
    assert registry.list_live() == []
    assert registry.find(registration.key) is None
    assert list(tmp_path.iterdir()) == []


def test_old_and_damaged_files_are_deleted_at_start(tmp_path: Path) -> None:
    clock = Clock()
    registration = add(WebhookRegistry(tmp_path, clock))
    (tmp_path / ("0" * 32)).write_bytes(b"{")
    (tmp_path / "other").write_bytes(b"")
    clock.now += LIFETIME_SECONDS + 1
    registry = WebhookRegistry(tmp_path, clock)
    registry.load()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert registry.find(registration.key) is None


def test_a_deleted_configuration_takes_its_registration_along(tmp_path: Path) -> None:
    """Its task and id must be known; the configurations of other agents stay."""
    registry = WebhookRegistry(tmp_path, Clock())
    first, unnamed = add(registry, PushConfig("t", "1")), add(registry, PushConfig("", "1"))
    registry.remove_config("other.example:80", PushConfig("t", "1"))
    registry.remove_config(AGENT, PushConfig("", "1"))
    registry.remove_config(AGENT, PushConfig("t", "2"))
    assert registry.list_live() == [first, unnamed]
    registry.remove_config(AGENT, PushConfig("t", "1"))
    assert registry.list_live() == [unnamed]
    assert [path.name for path in tmp_path.iterdir()] == [unnamed.key]


def test_a_configuration_that_is_created_again_has_one_registration(tmp_path: Path) -> None:
    """The agent keeps the latest URL of a configuration."""
    registry = WebhookRegistry(tmp_path, Clock())
    first, second = add(registry), add(registry)
    registry.name_config(first, PushConfig("t", "1"))
    registry.name_config(second, PushConfig("t", "1"))
    assert [(each.key, each.config) for each in registry.list_live()] == [
        (second.key, PushConfig("t", "1"))
    ]
    assert WebhookRegistry(tmp_path, Clock()).find(first.key) is None


def test_their_number_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REGISTRATIONS", 2)
    registry = WebhookRegistry(tmp_path, Clock())
    add(registry)
    add(registry)
    assert registry.add(HOOK, AGENT, (), PushConfig()) is None


def test_old_registrations_make_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a proxy that has run all the time since they were made."""
    monkeypatch.setattr(module, "MOST_REGISTRATIONS", 2)
    clock = Clock()
    registry = WebhookRegistry(tmp_path, clock)
    add(registry)
    clock.now += LIFETIME_SECONDS
    second = add(registry)
    clock.now += 1
    third = add(registry)
    assert registry.list_live() == [second, third]
    assert {path.name for path in tmp_path.iterdir()} == {second.key, third.key}


def test_unknown_keys_cause_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker can make up any number of them; keys that are known are found all the same."""
    clock, reads = Clock(), []
    registry, other = WebhookRegistry(tmp_path, clock), WebhookRegistry(tmp_path, clock)
    known, late = add(registry), add(other)
    read_bytes = Path.read_bytes

    def count_read(path: Path) -> bytes:
        reads.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", count_read)
    assert [registry.find(f"{number:032x}") for number in range(1000)] == [None] * 1000
    assert len(reads) == MOST_LOOKUPS
    assert registry.find(known.key) == known
    assert registry.find(late.key) is None
    clock.now += 1
    assert registry.find(late.key) == late


def test_files_that_were_not_written_to_the_end_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the error, or at a later start if the process was killed; not while another process
    writes."""
    registry = WebhookRegistry(tmp_path, Clock())

    def fail(path: Path, target: Path) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="no space left"):
        add(registry)
    assert list(tmp_path.iterdir()) == []
    clock = Clock()
    left = tmp_path / f"{1:032x}.new"
    left.write_bytes(b"{")
    (tmp_path / "other.new").write_bytes(b"{")
    clock.now = left.stat().st_mtime + LEFT_FILE_SECONDS
    WebhookRegistry(tmp_path, clock).load()
    assert left.exists()
    clock.now += 1
    WebhookRegistry(tmp_path, clock).load()
    assert [path.name for path in tmp_path.iterdir()] == ["other.new"]


def test_the_number_of_each_client_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client does not use up the room of the others, also after a restart; a removed one makes
    room."""
    monkeypatch.setattr(module, "MOST_OF_CLIENT", 2)
    registry = WebhookRegistry(tmp_path, Clock())
    first, second = (registry.add(HOOK, AGENT, (), PushConfig(), "10.0.0.1") for _ in range(2))
    assert first is not None
    assert second is not None
    registry.name_config(second, PushConfig("t", "1"))
    for each in (registry, WebhookRegistry(tmp_path, Clock())):
        each.load()
        assert each.add(HOOK, AGENT, (), PushConfig(), "10.0.0.1") is None
    assert registry.add(HOOK, AGENT, (), PushConfig(), "10.0.0.2") is not None
    registry.remove(first.key)
    assert registry.add(HOOK, AGENT, (), PushConfig(), "10.0.0.1") is not None
