"""The registered webhooks of all agents, one file each in the state directory, so that they survive
a restart.

Several proxies may use the same folder: a key that this one does not know may have come from
another one.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.webhooks.registration import KEY_BYTES, Registration, is_key

MOST_REGISTRATIONS = 10_000
"""Registrations of one folder; further ones are not accepted."""
MOST_OF_CLIENT = 1_000
"""Those of one client's address."""

MOST_LOOKUPS = 10
"""Files that are read per second for unknown keys, which an attacker may make up."""
LEFT_FILE_SECONDS = 60.0
"""Seconds after which a file that is not complete was left by a process that has ended."""

_PRIVATE_MODE = 0o600
_NEW_SUFFIX = ".new"


class WebhookRegistry:
    """The registrations in one folder."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float],
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Create the registry. `now` returns the time in seconds since the epoch. Call `load`
        before anything else."""
        self._folder = folder
        self._now = now
        self._random_bytes = random_bytes
        self._registrations: dict[str, Registration] = {}
        self._count_of_client: Counter[str] = Counter()
        self.port = 0
        """The port of this proxy's listener."""
        self.on_removed: Callable[[str], None] = _ignore_key
        """Called with the key of each registration that is removed."""
        self._lookup_second, self._lookup_count = 0, 0

    def load(self) -> None:
        """Read the registrations, and delete those that are too old, cannot be read or were not
        written to the end. Raises OSError."""
        for path in self._folder.iterdir():
            if (is_key(path.name) and self._read_file(path.name) is None) or self._is_left(path):
                self._delete_file(path.name)

    def __len__(self) -> int:
        """Return the number of registrations that this proxy knows."""
        return len(self._registrations)

    def add(
        self, url: str, agent: str, sources: tuple[str, ...], config: PushConfig, client: str = ""
    ) -> Registration | None:
        """Return a new registration for the URL of the client at an IP address, or None if there
        are too many. Raises OSError."""
        if self._is_full(client):
            self.remove_expired()
        if self._is_full(client):
            return None
        key = self._random_bytes(KEY_BYTES).hex()
        registration = Registration(
            key, url, agent, self.port, self._now(), sources, config, client
        )
        self._write_file(registration)
        return registration

    def _is_full(self, client: str) -> bool:
        return (
            len(self._registrations) >= MOST_REGISTRATIONS
            or self._count_of_client[client] >= MOST_OF_CLIENT
        )

    def find(self, key: str) -> Registration | None:
        """Return the registration of a key, or None if it is unknown or too old."""
        if not is_key(key):
            return None
        found = self._registrations.get(key) or self._look_up(key)
        if found is not None and found.is_expired(self._now()):
            self.remove(key)
            return None
        return found

    def name_config(self, registration: Registration, config: PushConfig) -> None:
        """Store the configuration that has a registration. Others of the same configuration are
        removed, because the agent keeps only the latest URL. Raises OSError."""
        if registration.config != config:
            for key in self._keys_of(registration.agent, config):
                self.remove(key)
            self._write_file(msgspec.structs.replace(registration, config=config))

    def remove_config(self, agent: str, config: PushConfig) -> None:
        """Remove the registrations of a configuration whose task and id are known."""
        for key in self._keys_of(agent, config):
            self.remove(key)

    def remove(self, key: str) -> None:
        """Remove a registration, if it exists."""
        self._store(key, None)
        self._delete_file(key)
        self.on_removed(key)

    def remove_expired(self) -> None:
        """Remove the registrations that are too old."""
        now = self._now()
        for key in [key for key, each in self._registrations.items() if each.is_expired(now)]:
            self.remove(key)

    def list_live(self) -> list[Registration]:
        """Return the registrations that lead to this proxy and are not too old, the oldest
        first."""
        now = self._now()
        live = [
            each
            for each in self._registrations.values()
            if each.port == self.port and not each.is_expired(now)
        ]
        return sorted(live, key=lambda each: each.created)

    def _keys_of(self, agent: str, config: PushConfig) -> list[str]:
        if not config.task_id or not config.id:
            return []
        return [
            key
            for key, each in self._registrations.items()
            if each.agent == agent and each.config == config
        ]

    def _look_up(self, key: str) -> Registration | None:
        """Return the registration of a key that another proxy may have added, unless there are too
        many such keys."""
        second = int(self._now())
        if second != self._lookup_second:
            self._lookup_second, self._lookup_count = second, 0
        self._lookup_count += 1
        return self._read_file(key) if self._lookup_count <= MOST_LOOKUPS else None

    def _is_left(self, path: Path) -> bool:
        if not is_key(path.name.removesuffix(_NEW_SUFFIX)):
            return False
        with contextlib.suppress(OSError):
            return (
                path.suffix == _NEW_SUFFIX
                and self._now() - path.stat().st_mtime > LEFT_FILE_SECONDS
            )
        return False

    def _read_file(self, name: str) -> Registration | None:
        try:
            found = msgspec.json.decode((self._folder / name).read_bytes(), type=Registration)
        except (OSError, ValueError):
            return None
        if found.key != name or found.is_expired(self._now()):
            return None
        self._store(name, found)
        return found

    def _write_file(self, registration: Registration) -> None:
        path = self._folder / f"{registration.key}{_NEW_SUFFIX}"
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        try:
            with open(
                os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_MODE), "wb"
            ) as file:
                file.write(msgspec.json.encode(registration))
            path.rename(self._folder / registration.key)
        except OSError:
            self._delete_file(path.name)
            raise
        self._store(registration.key, registration)

    def _store(self, key: str, registration: Registration | None) -> None:
        if (before := self._registrations.pop(key, None)) is not None:
            self._count_of_client[before.client] -= 1
        if registration is not None:
            self._registrations[key] = registration
            self._count_of_client[registration.client] += 1

    def _delete_file(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._folder / name).unlink()


def _ignore_key(_: str) -> None:
    """Ignore the key of a removed registration."""
