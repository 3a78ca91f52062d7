"""The recorded agent card with the URLs of the mock. Performs no I/O."""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from a2a_proxy.model.values import CARD_BINDINGS, Binding
from a2a_proxy.model.wire import Headers
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ReplayScript, ScriptSide

Json = dict[str, Any]

_TRANSPORTS = {
    "JSONRPC": Binding.JSONRPC,
    "HTTP+JSON": Binding.REST,
    "GRPC": Binding.GRPC,
    "STDIO": Binding.STDIO,
}
"""Transport names of agent cards, in capitals."""
_INTERFACE_FIELDS = (
    ("supportedInterfaces", "protocolBinding"),
    ("additionalInterfaces", "transport"),
)
"""Fields of a card that list interfaces, of 1.0 and of 0.3, and the field of an interface that
names its transport."""


class CardPage(msgspec.Struct, frozen=True):
    """The answer to a GET of a card."""

    status: int
    body: Json | None
    """None: no card."""
    headers: Headers = ()
    """Headers as recorded."""
    raw: bytes = b""
    """The card as recorded."""


class ReplayCards:
    """The cards of a script and the changes applied to them."""

    def __init__(
        self, script: ReplayScript, *, keep: bool = False, add: tuple[Binding, ...] = ()
    ) -> None:
        """`keep` leaves the cards as recorded; `add` lists bindings to offer in the card even if it
        does not list them."""
        self.missed_path = ""
        """Path at which a client requested a card although the script has none; empty if no client
        did."""
        self._keep = keep
        self._add = add
        self._pages: dict[str, CardPage] = {}
        for call in (each for each in script.cards if not each.refusal):
            page = _make_page(call)
            path = call.target.partition("?")[0]
            if page is not None and (page.body is not None or path not in self._pages):
                self._pages[path] = page
        self._first_page = next(
            (page for page in reversed(self._pages.values()) if page.body is not None), None
        )

    def card_page(self, path: str, authority: str) -> CardPage:
        """Return the answer to a GET of `path` by a client that addresses the mock as
        `authority`."""
        page = self._pages.get(path) or self._first_page or CardPage(404, None)
        return (
            page
            if page.body is None
            else msgspec.structs.replace(page, body=self.localise_card(page.body, authority))
        )

    def localise_card(self, card: Json, authority: str) -> Json:
        """Return a card whose interfaces have the URLs of the mock."""
        if self._keep:
            return card
        localised = dict(card)
        transport = str(card.get("preferredTransport") or card.get("transport") or "")
        if isinstance(card.get("url"), str) and not _is_command(card["url"], transport):
            localised["url"] = _localise_url(card["url"], transport, authority)
        for member, name in _INTERFACE_FIELDS:
            if isinstance(card.get(member), list):
                localised[member] = list(self._localise_interfaces(card[member], name, authority))
        return localised

    def _localise_interfaces(self, entries: list[Any], name: str, authority: str) -> list[Any]:
        interfaces = []
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
                continue
            transport = str(entry.get(name) or "")
            if not _is_command(
                entry["url"], transport
            ):  # a client that follows a command would start the agent itself
                interfaces.append(
                    {**entry, "url": _localise_url(entry["url"], transport, authority)}
                )
        offered = {_binding_of_transport(str(entry.get(name) or "")) for entry in interfaces}
        version = {
            key: interfaces[0][key]
            for key in ("protocolVersion",)
            if interfaces and key in interfaces[0]
        }
        for binding in self._add:
            if binding not in offered:
                url = authority if binding is Binding.GRPC else f"http://{authority}"
                interfaces.append({"url": url, name: CARD_BINDINGS[binding], **version})
        return interfaces

    @property
    def has_card(self) -> bool:
        """Whether the script has a card."""
        return self._first_page is not None

    @property
    def offered_bindings(self) -> tuple[Binding, ...]:
        """The bindings that the recorded card lists."""
        bindings = (_binding_of_transport(transport) for transport, _ in self._listed_interfaces())
        return tuple(dict.fromkeys(binding for binding in bindings if binding is not None))

    @property
    def rpc_paths(self) -> frozenset[str]:
        """Paths of JSON-RPC in the recorded card."""
        return frozenset(
            unquote(_split_url(url).path)
            for name, url in self._listed_interfaces()
            if _binding_of_transport(name) is Binding.JSONRPC
        )

    def _listed_interfaces(self) -> list[tuple[str, str]]:
        """Return transport and URL of each interface of the recorded card."""
        card = (
            self._first_page.body
            if self._first_page is not None and self._first_page.body is not None
            else {}
        )
        url = card.get("url")
        listed = (
            [(str(card.get("preferredTransport") or "JSONRPC"), url)]
            if isinstance(url, str)
            else []
        )
        for member, name in _INTERFACE_FIELDS:
            entries = card.get(member)
            found = (
                [one for one in entries if isinstance(one, dict)]
                if isinstance(entries, list)
                else []
            )
            listed += [(str(one.get(name)), str(one.get("url", ""))) for one in found]
        return listed

    def card_notes(self) -> list[tuple[str, str]]:
        """Return warnings about the cards, each with a hint or an empty string."""
        if self._first_page is None or self._first_page.body is None:
            text = "the recording has no agent card: a client that requests it gets 404"
            return [
                (
                    text,
                    "record with a client that requests it, or configure the address in the client",
                )
            ]
        notes = []
        if self._first_page.body.get("signatures") and not self._keep:
            text = (
                "the agent card is signed, and its URLs were changed to this mock: its signature "
                "is no longer valid"
            )
            notes.append(
                (text, "serve it unchanged, with the URLs of the recorded agent: --keep-card")
            )
        if self._keep:
            notes.append(
                (
                    (
                        "the agent card is served as recorded: clients that follow its URLs leave "
                        "the mock"
                    ),
                    "",
                )
            )
        return notes


def _make_page(call: RecordedCall) -> CardPage | None:
    for line in call.lines:
        if line.side is ScriptSide.AGENT and line.what in (LineKind.MESSAGE, LineKind.ERROR):
            card = line.value if call.status < 400 and isinstance(line.value, dict) else None
            if card is not None and not (
                "name" in card and set(card) & {"url", "supportedInterfaces", "skills"}
            ):
                card = None
            if card is not None or call.status >= 400:
                return CardPage(call.status, card, call.answer_headers, line.raw)
            return None
    return None


def _binding_of_transport(transport: str) -> Binding | None:
    return _TRANSPORTS.get(transport.upper(), None if transport else Binding.JSONRPC)


def _is_command(url: str, transport: str) -> bool:
    """Whether an interface is a command for stdio, whatever its binding is called
    (manual/protocol.md "Stdio framing")."""
    named = transport.upper().rpartition("/")[2] == "STDIO"
    return named or (_binding_of_transport(transport) is None and "://" not in url)


def _localise_url(url: str, transport: str, authority: str) -> str:
    """Return the same path at the mock; for gRPC with a scheme only if the recorded URL had one."""
    if "://" not in url:
        return authority
    parts = _split_url(url)
    path = "" if _binding_of_transport(transport) is Binding.GRPC else parts.path
    return f"http://{authority}{path}" + (f"?{parts.query}" if parts.query else "")


def _split_url(url: str) -> SplitResult:
    """Return the parts of a URL; empty parts if it cannot be parsed."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")
