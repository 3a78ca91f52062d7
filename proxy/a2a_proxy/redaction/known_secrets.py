"""Secrets found in a known place, so that they are recognized everywhere else: in an echo, an error
text, a file.

Each secret is searched for unencoded, JSON-escaped up to `DEEPEST_ESCAPE` times, percent-encoded,
and in base64 at each of the three alignments.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote_from_bytes

import msgspec

from a2a_proxy.protocol.status_summary import MAX_PLAIN_DIGITS
from a2a_proxy.redaction.labels import is_label

SHORTEST = 6
"""Bytes. Shorter values are replaced in their known place only: elsewhere they would match by
chance."""

MIN_SECRET_DIGITS = MAX_PLAIN_DIGITS + 1
"""Bytes. Shorter values of digits alone, or of small letters, are ordinary text."""

LONGEST = 64 << 10
"""Bytes. Kerberos has the longest credentials, of 48,000 bytes; searching for longer ones is
expensive."""

MAX_SECRETS = 1024
"""Secrets that are remembered. Beyond it, the half that was not used for the longest time is
forgotten."""

MAX_SECRET_BYTES = 4 << 20
"""Bytes of all secrets together; beyond it, half of the secrets are forgotten too."""

DEEPEST_ESCAPE = 4
"""Levels of JSON in strings of JSON."""
_LONGEST_CUT = 8192
"""Bytes of a secret that the end of a text cuts off, at most. Comparing more takes time with their
square."""
_WORD = 8
_LONG = 2 * _WORD - 1
"""Bytes. A form of this length or more covers at least one aligned 8-byte word at any offset."""
_FEW = 5

_ADDRESS = re.compile(
    rb"\[?(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-fA-F]{0,4}(?::[\da-fA-F]{0,4}){2,7})\]?(?::\d{1,5})?"
)
"""An IPv4 or IPv6 address, with or without a port."""

_VOCABULARY = frozenset(
    b"submitted working completed failed canceled cancelled rejected unknown input-required "
    b"auth-required message "
    b"status-update artifact-update artifact bearer basic digest string number object boolean "
    b"default example required "
    b"optional localhost undefined secret password passwd credentials authorization cookie "
    b"application/json "
    b"text/plain jsonrpc result params status parts history metadata artifacts configuration "
    b"streaming "
    b"generation".split()
)
"""Words of the protocol and placeholders: they may be passwords, but they also occur in all
traffic."""


def list_forms(secret: bytes) -> list[bytes]:
    """Return the forms that a secret may have in a payload, the plain form first, each form
    once."""
    found = {secret: None, **dict.fromkeys(_list_escaped_forms(secret))}
    percent = quote_from_bytes(secret, safe="").encode()
    found[percent] = None
    found[quote_from_bytes(secret).encode()] = None
    if percent != secret:
        found[_lower_hex(percent)] = None
    for shift in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            whole = encode(bytes(shift) + secret)
            found[whole[(0, 2, 3)[shift] : (shift + len(secret)) * 8 // 6]] = None
    return list(found)


def _list_escaped_forms(secret: bytes) -> list[bytes]:
    try:
        text = secret.decode()
    except UnicodeDecodeError:
        return []
    once = ascii_only = msgspec.json.encode(text)[1:-1]
    if not text.isascii():
        ascii_only = "".join(
            c if ord(c) < 128 else f"\\u{ord(c):04x}" for c in once.decode() if ord(c) < 0x10000
        ).encode()
    found = [once, ascii_only, once.replace(b"/", b"\\/")]
    for form in (once, ascii_only):
        for _ in range(DEEPEST_ESCAPE - 1 if b"\\" in form else 0):
            form = msgspec.json.encode(form.decode())[1:-1]
            if len(form) > LONGEST:
                break
            found.append(form)
    return found


def _lower_hex(percent: bytes) -> bytes:
    pieces = percent.split(b"%")
    return b"%".join([pieces[0], *(piece[:2].lower() + piece[2:] for piece in pieces[1:])])


class KnownSecrets:
    """A bounded set of secrets; those not used for the longest time are forgotten first.
    `change_count` counts its changes."""

    def __init__(self) -> None:
        self.change_count = 0
        self._secrets: dict[bytes, None] = {}
        self._size = 0
        """Bytes of all secrets."""
        self._forms: dict[bytes, bytes] = {}
        self._few: tuple[bytes, ...] = ()
        self._words: set[int] = set()

    def add(self, secret: bytes) -> None:
        """Remember a secret, unless it is too short, too long or too common to search for."""
        if secret in self._secrets:
            self._secrets[secret] = self._secrets.pop(secret)  # the newest now
            return
        if (
            not SHORTEST <= len(secret) <= LONGEST
            or secret.lower() in _VOCABULARY
            or is_label(secret)
        ):
            return
        if _is_ordinary_text(secret):
            return
        self._secrets[secret] = None
        self._size += len(secret)
        if len(self._secrets) > MAX_SECRETS or self._size > MAX_SECRET_BYTES:
            # Half at once: rebuilding the index is expensive, and tokens issued per task would
            # require it every time.
            self._secrets = dict.fromkeys(list(self._secrets)[len(self._secrets) // 2 :])
            self._size = sum(map(len, self._secrets))
            self._rebuild_index()
        else:
            self._index_secret(secret)
        self.change_count += 1

    def _rebuild_index(self) -> None:
        self._forms, self._few, self._words = {}, (), set()
        for secret in self._secrets:
            self._index_secret(secret)

    def _index_secret(self, secret: bytes) -> None:
        new = [form for form in list_forms(secret) if len(form) >= SHORTEST]
        self._forms.update(dict.fromkeys(new, secret))
        if len(self._forms) <= _FEW:
            self._few = tuple(self._forms)
            return
        if not self._words:
            self._few, new = (), list(self._forms)
        self._few += tuple(form for form in new if len(form) < _LONG)
        for form in new:
            self._words.update(_list_aligned_words(form))

    def may_contain_secret(self, data: bytes) -> bool:
        """Whether the data may contain a secret. No false negatives, some false positives. About 1
        us for 300 bytes."""
        for form in self._few:
            if form in data:
                return True
        if self._words:
            return not self._words.isdisjoint(memoryview(data)[: len(data) & -_WORD].cast("Q"))
        return False

    def find_secrets(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return the start, the end and the secret of each occurrence in the data."""
        found: list[tuple[int, int, bytes]] = []
        if self._forms and self.may_contain_secret(data):
            for form, secret in self._forms.items():
                at = data.find(form)
                while at >= 0:
                    found.append((at, at + len(form), secret))
                    at = data.find(form, at + len(form))
        return found

    def find_cut_secret(self, data: bytes) -> tuple[int, int, bytes] | None:
        """Return start, end and secret of a secret that the end of the data cuts off after 3 bytes
        or more, or None."""
        best: tuple[int, int, bytes] | None = None
        for form, secret in self._forms.items():
            floor = len(data) if best is None else best[0]
            at = data.find(form[:3], max(0, len(data) - min(len(form), _LONGEST_CUT) + 1))
            while 0 <= at < floor:
                if form.startswith(data[at:]):
                    best = (at, len(data), secret)
                    break
                at = data.find(form[:3], at + 1)
        return best

    @property
    def secrets(self) -> list[bytes]:
        """The secrets, the newest last."""
        return list(self._secrets)


def _is_ordinary_text(secret: bytes) -> bool:
    """Whether ordinary text may contain the value: `because`, `Berlin`, `123456`, `two words`,
    `127.0.0.1:80`.

    Otherwise a peer that sends its address as a password would hide that address in the whole
    recording.
    """
    if _ADDRESS.fullmatch(secret):
        return True
    if b" " in secret:
        return len(secret) < 16
    return len(secret) < MIN_SECRET_DIGITS and (
        secret.isdigit() or (secret.isalpha() and secret[1:].islower())
    )


def _list_aligned_words(form: bytes) -> list[int]:
    if len(form) < _LONG:
        return []
    return [memoryview(form[shift : shift + _WORD]).cast("Q")[0] for shift in range(_WORD)]
