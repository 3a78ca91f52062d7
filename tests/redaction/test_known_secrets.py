"""Known secrets are found at any place, also among many; common words are not searched for."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from a2a_proxy.redaction.known_secrets import (
    DEEPEST_ESCAPE,
    LONGEST,
    MAX_SECRET_BYTES,
    MAX_SECRETS,
    KnownSecrets,
)


def secret(number: int) -> bytes:
    return b"Zq8-secret-%06d" % number


def known(*secrets: bytes) -> KnownSecrets:
    found = KnownSecrets()
    for each in secrets:
        found.add(each)
    return found


@pytest.mark.parametrize("count", [1, 2, 10, 40, 200])
def test_each_secret_is_found_at_any_place(count: int) -> None:
    secrets = known(*map(secret, range(count)))
    for number in {0, count // 2, count - 1}:
        for shift in range(17):
            data = b"." * shift + secret(number) + b"!"
            assert secrets.may_contain_secret(data)
            assert secrets.find_secrets(data) == [
                (shift, shift + len(secret(number)), secret(number))
            ]
    assert secrets.find_secrets(b"." * 40 + secret(count)) == []


def test_a_short_secret_is_found_among_many_long_ones() -> None:
    secrets = known(*map(secret, range(100)), b"x7Kq2p")
    for shift in range(9):
        assert secrets.find_secrets(b"." * shift + b"x7Kq2p,") == [(shift, shift + 6, b"x7Kq2p")]


def test_a_secret_is_found_more_than_once_and_in_base64() -> None:
    one = b"Zq8Rk3VtY0pL"
    assert [each[:2] for each in known(one).find_secrets(one + b" " + one)] == [(0, 12), (13, 25)]
    assert {each[2] for each in known(one).find_secrets(b64encode(one))} == {one}


def test_the_older_half_is_forgotten_if_there_are_too_many() -> None:
    secrets = known(*map(secret, range(MAX_SECRETS)))
    assert secrets.find_secrets(secret(0))
    assert len(secrets.secrets) == MAX_SECRETS
    secrets.add(secret(MAX_SECRETS))
    assert secrets.secrets == [
        secret(number) for number in range(MAX_SECRETS // 2, MAX_SECRETS + 1)
    ]
    assert not secrets.find_secrets(secret(0))
    for number in (MAX_SECRETS // 2 + 1, MAX_SECRETS - 1, MAX_SECRETS):
        assert secrets.find_secrets(b"." + secret(number)) == [
            (1, 1 + len(secret(number)), secret(number))
        ]


def test_a_secret_in_use_is_not_forgotten() -> None:
    """A client sends its token with each call, between those of 1,100 tasks."""
    secrets = known(b"Zq8Rk3VtY0pL-session")
    for number in range(1100):
        secrets.add(secret(number))
        secrets.add(b"Zq8Rk3VtY0pL-session")
    assert secrets.find_secrets(b"Zq8Rk3VtY0pL-session")
    assert not secrets.find_secrets(secret(0))


def test_the_bytes_of_all_secrets_are_bounded() -> None:
    secrets = known(
        *(b"%07d-" % number * (LONGEST // 8) for number in range(3 * MAX_SECRET_BYTES // LONGEST))
    )
    assert MAX_SECRET_BYTES // 4 < sum(map(len, secrets.secrets)) <= MAX_SECRET_BYTES
    assert secrets.find_secrets(secrets.secrets[-1])


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("levels", range(DEEPEST_ESCAPE + 1))
def test_a_secret_is_found_in_strings_of_strings(levels: int, ascii_only: bool) -> None:
    """JSON in a string of JSON, and so on: each level escapes quotes and backslashes once more."""
    one = text = 'Zq8"Rk3V\\0pL-\u00e9'
    for _ in range(levels):
        text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    data = f"you sent {text} once".encode()
    assert (9, len(data) - 5, one.encode()) in known(one.encode()).find_secrets(data)


def test_the_changes_are_counted_and_a_known_secret_is_no_change() -> None:
    secrets = known(secret(1), secret(2), secret(1))
    assert secrets.change_count == 2
    assert secrets.secrets == [secret(2), secret(1)]
    again = KnownSecrets()
    for each in secrets.secrets:
        again.add(each)
    assert again.find_secrets(secret(2)) == secrets.find_secrets(secret(2)) != []


@pytest.mark.parametrize(
    "value",
    [
        b"x7Kq2p",
        b"x" * 11 + b"7",
        b"pass phrase with more words",
        b"1234567890123",
        b"y7" * (LONGEST // 2),
    ],
)
def test_these_are_searched_for(value: bytes) -> None:
    assert known(value).secrets == [value]


@pytest.mark.parametrize(
    "value",
    [
        b"x7Kq2",
        b"because",
        b"Berlin",
        b"123456",
        b"12345678901",
        b"two words",
        b"abcdefghijk",
        b"127.0.0.1:80",
        b"redacted-5011cc61ff53",
        b"x" * (LONGEST + 1),
        b"",
    ],
)
def test_these_are_too_short_too_long_or_too_common(value: bytes) -> None:
    assert known(value).secrets == []


@pytest.mark.parametrize("count", [1, 100])
def test_the_beginning_of_a_secret_at_the_end_of_cut_data(count: int) -> None:
    one = b"aB7-Zq8Rk3Vt"
    secrets = known(*(b"%03d-other-key" % number for number in range(1, count)), one)
    for size in range(1, len(one)):
        expected = (2, 2 + size, one) if size >= 3 else None
        assert secrets.find_cut_secret(b"x=" + one[:size]) == expected
    assert secrets.find_cut_secret(b"x=" + one + b" ") is None
    assert secrets.find_cut_secret(b"aB7-aB7-Zq") == (4, 10, one)
    assert secrets.find_cut_secret(b"aB7") == (0, 3, one)
    assert secrets.find_cut_secret(b"") is None
    assert KnownSecrets().find_cut_secret(b"aB7") is None


def test_of_two_cut_secrets_the_one_that_begins_first_is_meant() -> None:
    first, second = b"k7-aB7-Zq8Rk3", b"aB7-Zq8Rk3Vt"
    for secrets in (known(first, second), known(second, first)):
        assert secrets.find_cut_secret(b"..k7-aB7-Zq") == (2, 11, first)
        assert secrets.find_cut_secret(b"..aB7-Zq") == (2, 8, second)
