from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.certificates import store
from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.store import (
    AuthorityError,
    open_authority,
    read_replaced,
    renew_authority,
)

NOW = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)


def test_it_is_created_once(tmp_path: Path) -> None:
    """Only its owner can read the key; the certificate's file holds no key, and is written again if
    it is lost."""
    authority = open_authority(tmp_path, NOW)
    (tmp_path / "ca.pem").unlink()
    again = open_authority(tmp_path, NOW)
    assert again.sha256 == authority.sha256
    assert (tmp_path / "ca.pem").read_bytes() == authority.certificate_pem
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"authority.pem": 0o600, "ca.pem": 0o644}


def test_two_processes_get_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second to create it finds the first one's."""
    first: list[Authority] = []
    create = Authority.create

    def create_late(machine: str, now: datetime.datetime) -> Authority:
        monkeypatch.setattr(Authority, "create", create)
        first.append(open_authority(tmp_path, NOW))
        return create(machine, now)

    monkeypatch.setattr(Authority, "create", create_late)
    assert open_authority(tmp_path, NOW).sha256 == first[0].sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["authority.pem", "ca.pem"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    open_authority(tmp_path, NOW)
    os.chmod(tmp_path / "authority.pem", mode)
    with pytest.raises(AuthorityError) as refused:
        open_authority(tmp_path, NOW)
    assert "other users can read the key" in refused.value.message
    assert f"chmod 600 {tmp_path / 'authority.pem'}" in refused.value.hint


def test_a_broken_or_old_one_is_refused_until_it_is_renewed(tmp_path: Path) -> None:
    """Renewing needs no valid predecessor."""
    old = open_authority(tmp_path, NOW - datetime.timedelta(days=729))
    with pytest.raises(AuthorityError, match="valid only until 2026-11-23") as refused:
        open_authority(tmp_path, NOW)
    assert "a2a-proxy ca renew" in refused.value.hint
    (tmp_path / "authority.pem").write_bytes(old.certificate_pem)
    with pytest.raises(AuthorityError, match="holds no authority"):
        open_authority(tmp_path, NOW)
    new = renew_authority(tmp_path, NOW)
    assert new.sha256 != old.sha256
    assert open_authority(tmp_path, NOW).sha256 == new.sha256
    assert (tmp_path / "ca.pem").read_bytes() == new.certificate_pem
    assert stat.S_IMODE((tmp_path / store.AUTHORITY_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("use", [open_authority, renew_authority])
def test_a_folder_that_others_can_use_is_closed_to_them(
    tmp_path: Path, use: Callable[[Path, datetime.datetime], object]
) -> None:
    """Who can write into it can replace the authority."""
    tmp_path.chmod(0o777)
    use(tmp_path, datetime.datetime.now(datetime.UTC))
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_replaced_certificates_are_kept(tmp_path: Path) -> None:
    """So that they can be removed from files of trusted authorities."""
    assert read_replaced(tmp_path) == b""
    certificates = [
        open_authority(tmp_path, NOW).certificate_pem,
        renew_authority(tmp_path, NOW).certificate_pem,
    ]
    assert read_replaced(tmp_path) == certificates[0]
    renew_authority(tmp_path, NOW)
    assert read_replaced(tmp_path) == b"".join(certificates)
