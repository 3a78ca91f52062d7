"""Rules about agent cards: variants, near misses, cards of other lines and over other bindings."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    http,
    rest,
    rest_error,
    rpc,
    rpc_error,
)
from a2a_proxy.rules.examples.objects import card, send, sign_card, snapshot, task
from a2a_proxy.rules.examples.script import MS, Script
from support_rules import findings

WELL_KNOWN = "/.well-known/agent-card.json"
OLD_PATH = "/.well-known/agent.json"
SKILL = {"id": "echo", "name": "Echo", "description": "Says it again", "tags": ["text"]}
CARD_0_1 = {
    "name": "Old",
    "url": "http://localhost:8000/",
    "version": "0.1.0",
    "authentication": {"schemes": ["public"]},
    "capabilities": {},
    "skills": [{"id": "echo", "name": "Echo"}],
    "defaultInputModes": ["text"],
}
CARD_0_2 = {
    "name": "Old",
    "description": "An old agent",
    "url": "http://localhost:8000/",
    "version": "0.2.0",
    "capabilities": {"streaming": True},
    "skills": [SKILL],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}
CARD_0_3 = CARD_0_2 | {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
KEY = {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}}
BEARER = {"Authorization": "Bearer t0ken-of-ann"}
JSONRPC = {"url": "http://localhost:8000/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
REST = {
    "url": "http://localhost:8000/api",
    "protocolBinding": "HTTP+JSON",
    "protocolVersion": "1.0",
}


NOT_FOUND = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND")


def said(script: Script, rule: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-CARD-{rule}"
    ]


def offering(*entries: dict[str, Any]) -> dict[str, Any]:
    """A card with these interfaces."""
    return card(supportedInterfaces=list(entries))


def missing(status: int = 404) -> Script:
    """No card at the well-known path."""
    return http("GET", WELL_KNOWN, version="", status=status, answer="{}")


class TestDiscovery:
    """001, 002, 010, 011."""

    def test_nothing_known_is_less_sure(self) -> None:
        """Perhaps it is no agent at all."""
        assert said(missing().then(missing(500), 4000 * MS), "001") == ["WARNING?"]

    def test_agents_of_0_2_have_their_card_elsewhere(self) -> None:
        """A client probes the new path first."""
        for old in (CARD_0_1, CARD_0_2):
            script = (missing() + fetch_card(_json(old), path=OLD_PATH)).then(
                missing(500), 4000 * MS
            )
            assert said(script, "001") == []

    def test_traffic_tells_what_line_it_is(self) -> None:
        """Without any card: calls of 1.0 succeed."""
        script = (missing() + rpc("SendMessage", send(), snapshot("COMPLETED"))).then(
            missing(500), 4000 * MS
        )
        assert said(script, "001") == ["WARNING"]

    @pytest.mark.parametrize("status", [401, 429, 500, 503])
    def test_other_refusals_may_be_a_gateway_s(self, status: int) -> None:
        """They say nothing about where the card is."""
        assert said(missing(status).then(missing(500), 4000 * MS), "001") == []

    def test_a_body_that_is_no_json(self) -> None:
        """With the right type."""
        assert said(fetch_card("<html></html>"), "002") == ["WARNING"]
        assert said(missing(404), "002") == []

    def test_structured_suffix_is_json(self) -> None:
        """`+json` types are JSON."""
        assert said(fetch_card(media="application/a2a+json"), "002") == []

    def test_one_caching_header_is_not_enough(self) -> None:
        """Both are recommended."""
        assert said(fetch_card(reply_headers={"ETag": None}), "010") == ["INFO"]
        assert said(fetch_card(reply_headers={"Cache-Control": "no-store"}), "010") == ["INFO"]

    def test_cards_by_host_and_credentials_are_different_cards(self) -> None:
        """An agent may name itself as it was called, and show more to those it knows."""
        other = card(description="Another text")
        assert said(fetch_card() + fetch_card(other, host="other.example.com"), "011") == []
        assert said(fetch_card() + fetch_card(other, headers=BEARER), "011") == []

    def test_a_new_signature_is_no_change(self) -> None:
        """Signatures are not part of what is signed."""
        signed = [
            {"protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0", "signature": name}
            for name in ("YQ", "Yg")
        ]
        assert (
            said(
                fetch_card(card(signatures=signed[:1])) + fetch_card(card(signatures=signed[1:])),
                "011",
            )
            == []
        )

    def test_same_tag_for_another_version(self) -> None:
        """A conditional request would get 304."""
        assert said(fetch_card() + fetch_card(card(version="2.0.0")), "011") == ["WARNING"]


class TestMembers:
    """003, 004, 014, 017."""

    @pytest.mark.parametrize("old", [CARD_0_1, CARD_0_2, CARD_0_3])
    def test_each_line_has_its_own(self, old: dict[str, Any]) -> None:
        """What 1.0 requires is not asked of older cards."""
        assert [
            each for each in findings(fetch_card(_json(old))) if each.rule.startswith("A2A-CARD")
        ] == []

    def test_members_and_those_of_skills(self) -> None:
        """Null and the empty text are not there, an empty description is."""
        assert said(fetch_card(_json(card() | {"version": ""})), "003") == ["ERROR"]
        assert said(fetch_card(_json(card() | {"capabilities": None})), "003") == ["ERROR"]
        assert said(fetch_card(card(description="")), "003") == []
        assert said(fetch_card(card(skills=[SKILL | {"tags": None}])), "003") == ["ERROR"]
        assert said(fetch_card(_json(CARD_0_3 | {"defaultInputModes": None})), "003") == ["ERROR"]

    def test_json_that_is_no_card(self) -> None:
        """It lacks everything; three of it are told, as of every rule in one exchange, and how many
        it were."""
        assert said(fetch_card('{"detail": "hello"}'), "003") == ["ERROR"] * 4
        assert said(missing(404), "003") == []

    @pytest.mark.parametrize(
        ("version", "severity"), [("1.0.1", "WARNING"), ("v1", "ERROR"), ("1", "ERROR")]
    )
    def test_versions_of_interfaces(self, version: str, severity: str) -> None:
        """A patch number is a smaller fault."""
        assert said(fetch_card(offering(JSONRPC | {"protocolVersion": version})), "004") == [
            severity
        ]

    def test_requirements_of_both_forms_and_of_skills(self) -> None:
        """0.3 has `security`, skills have their own."""
        old = {"security": [{"oauth": []}], "securitySchemes": {"key": {"type": "apiKey"}}}
        assert said(fetch_card(_json(CARD_0_3 | old)), "014") == ["ERROR"]
        assert (
            said(fetch_card(_json(CARD_0_3 | old | {"security": [{"key": []}, {}]})), "014") == []
        )
        skill = SKILL | {"securityRequirements": [{"schemes": {"oauth": {"list": []}}}]}
        assert said(fetch_card(card(skills=[skill], securitySchemes={"key": KEY})), "014") == [
            "ERROR"
        ]

    def test_bare_modes_and_equal_ids(self) -> None:
        """`text` is an old habit, in 0.1 the default."""
        assert said(fetch_card(card(defaultOutputModes=["text"])), "017") == ["INFO"]
        assert (
            said(fetch_card(card(defaultOutputModes=["text/html; charset=utf-8", "*/*"])), "017")
            == []
        )
        assert said(fetch_card(card(skills=[SKILL, SKILL])), "017") == ["WARNING"]
        assert said(fetch_card(card(skills=[SKILL | {"inputModes": ["a b"]}])), "017") == [
            "WARNING"
        ]


class TestInterfaces:
    """005 to 009, 015, 018."""

    @pytest.mark.parametrize(
        ("name", "found"), [("stdio", ["INFO"]), ("jsonrpc", ["WARNING"]), ("urn:x:y", [])]
    )
    def test_names_of_bindings(self, name: str, found: list[str]) -> None:
        """Spelled exactly, or a URI."""
        assert said(fetch_card(offering(JSONRPC | {"protocolBinding": name})), "005") == found

    @pytest.mark.parametrize(
        ("binding", "url", "fits"),
        [
            ("JSONRPC", "localhost:8000", False),
            ("HTTP+JSON", "/api", False),
            ("HTTP+JSON", "https://agent.example.com/api", True),
            ("GRPC", "grpc.example.com:443", True),
            ("GRPC", "[2001:db8::1]:443", True),
            ("GRPC", "dns:///grpc.example.com:443", True),
            ("GRPC", "https://grpc.example.com", True),
            ("GRPC", "grpc.example.com", False),
            ("GRPC", "/a2a", False),
        ],
    )
    def test_urls(self, binding: str, url: str, fits: bool) -> None:
        """By binding."""
        entry = {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}
        assert said(fetch_card(offering(entry)), "006") == ([] if fits else ["WARNING"])

    @pytest.mark.parametrize(
        ("url", "found"),
        [
            ("http://127.0.0.1:9/", []),
            ("http://[::1]/", []),
            ("http://agent/", ["INFO"]),
            ("http://10.1.2.3/", ["INFO"]),
            ("http://8.8.8.8/", ["WARNING"]),
            ("HTTP://agent.example.com", ["WARNING"]),
        ],
    )
    def test_plain_text_by_distance(self, url: str, found: list[str]) -> None:
        """A loopback host is exempt, private networks are a smaller matter."""
        assert said(fetch_card(offering(JSONRPC | {"url": url})), "007") == found
        assert said(fetch_card(_json(CARD_0_3 | {"url": url})), "007") == found

    @pytest.mark.parametrize(
        ("url", "found"),
        [
            ("http://agent.internal:8443/", ["WARNING"]),
            ("http://10.1.2.3/", ["WARNING"]),
            ("http://agent.example.com", ["WARNING"]),
            ("http://localhost:8000/", ["WARNING"]),
            ("https://agent.internal:8443/", []),
        ],
    )
    def test_plain_text_after_https(self, url: str, found: list[str]) -> None:
        """A card that was fetched over https leads the client to plain text."""
        offer = card(supportedInterfaces=[JSONRPC | {"url": url}])
        call = fetch_card(offer, upstream="https://agent.internal:8443")
        assert said(call, "007") == found

    def test_plain_text_at_the_port_of_https(self) -> None:
        """The same host and port cannot serve both, also on this machine; another port can."""
        for port, found in ((8443, ["WARNING"]), (8000, ["INFO"])):
            offer = card(supportedInterfaces=[JSONRPC | {"url": f"http://localhost:{port}/"}])
            assert said(fetch_card(offer, upstream="https://127.0.0.1:8443"), "007") == found

    def test_transports_of_0_3(self) -> None:
        """JSON-RPC and REST can share a URL; who is silent about the transport is warned."""
        same = {
            "additionalInterfaces": [{"url": "http://localhost:8000/", "transport": "HTTP+JSON"}]
        }
        assert said(fetch_card(_json(CARD_0_3 | same)), "008") == ["WARNING"]
        again = {
            "additionalInterfaces": [{"url": "http://localhost:8000/", "transport": "JSONRPC"}]
        }
        assert said(fetch_card(_json(CARD_0_3 | again)), "008") == []
        assert said(
            fetch_card(
                _json(
                    {name: item for name, item in CARD_0_3.items() if name != "preferredTransport"}
                )
            ),
            "008",
        ) == ["WARNING"]
        assert said(fetch_card(_json(CARD_0_2)), "008") == []

    def test_the_other_line(self) -> None:
        """A card of 1.0 only, and a call of 0.3 that works."""
        old = rpc(
            "tasks/get",
            {"id": "t1"},
            {"id": "t1", "kind": "task", "status": {"state": "working"}},
            version="",
        )
        assert said(fetch_card(offering(JSONRPC)) + old, "009") == ["WARNING"]
        both = offering(JSONRPC, JSONRPC | {"protocolVersion": "0.3"})
        assert said(fetch_card(both) + old, "009") == []

    def test_another_path(self) -> None:
        """REST below its URL, with or without a tenant; JSON-RPC exactly there."""
        declared = fetch_card(offering(JSONRPC | {"url": "http://localhost:8000/rpc/"}, REST))
        assert said(declared + rpc("GetTask", {"id": "t1"}, task(), target="/rpc"), "009") == []
        assert said(declared + rpc("GetTask", {"id": "t1"}, task(), target="/other"), "009") == [
            "WARNING"
        ]
        for path, found in (("/api", []), ("/api/acme", []), ("/v2", ["WARNING"])):
            assert said(declared + rest("GET", f"{path}/tasks/t1", None, task()), "009") == found

    def test_an_agent_with_a_public_name(self) -> None:
        """The address that is called is not in the card: its paths tell nothing."""
        declared = fetch_card(offering(JSONRPC | {"url": "https://agent.example.com/a2a"}))
        assert said(declared + rpc("GetTask", {"id": "t1"}, task()), "009") == []

    def test_a_call_before_the_card(self) -> None:
        """No peer is blamed for facts not yet known."""
        call = grpc("GetTask", {"id": "t1"}, task())
        assert said(call + fetch_card(offering(JSONRPC)), "009") == []

    @pytest.mark.parametrize(
        ("call", "found"),
        [
            (grpc("GetTask", {"id": "t1"}, status=12), ["INFO"]),
            (grpc("GetTask", {"id": "t1"}, status=5), []),
            (rest("GET", "/tasks/t1", None, '{"detail":"Not Found"}', status=404), ["INFO"]),
            (rest("GET", "/tasks/t1", None, NOT_FOUND, status=404), []),
            (rest("GET", "/tasks/t1", None, '{"detail":"no"}', status=403), []),
            (rpc("tasks/get", {"id": "t1"}, error=rpc_error(-32601), version=""), ["INFO"]),
            (rpc("tasks/get", {"id": "t1"}, error=rpc_error(-32001), version=""), []),
            (rpc("GetTask", {"id": "t1"}, error=rpc_error(-32601)), []),
        ],
    )
    def test_a_refused_binding_or_version(self, call: Script, found: list[str]) -> None:
        """Information for the client, unless the agent knows the call or the card offers it."""
        assert said(fetch_card(offering(JSONRPC)) + call, "009") == found

    def test_both_forms(self) -> None:
        """A closing slash makes no difference; the extended card is said twice."""
        merged = offering(JSONRPC) | {
            "url": "http://localhost:8000",
            "preferredTransport": "JSONRPC",
        }
        assert said(fetch_card(merged), "015") == []
        assert said(fetch_card(merged | {"supportsAuthenticatedExtendedCard": False}), "015") == [
            "WARNING"
        ]
        assert said(fetch_card(merged | {"supportsAuthenticatedExtendedCard": True}), "015") == []


class TestTrust:
    """012, 016, 019."""

    @pytest.mark.parametrize(
        ("protected", "signature", "found"),
        [
            ("eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0", "c2ln!", ["ERROR"]),
            ("eyJhbGciOiJFUzI1NiJ9", "c2ln", ["ERROR"]),
            ("WzFd", "c2ln", ["ERROR"]),
            (
                "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwiamt1IjoiaHR0cDovL2EuZXhhbXBsZSJ9",
                "c2ln",
                ["WARNING"],
            ),
        ],
    )
    def test_signatures(self, protected: str, signature: str, found: list[str]) -> None:
        """Not base64url; without `kid`; a list; a `jku` with http."""
        entry = {"protected": protected, "signature": signature}
        assert said(fetch_card(card(signatures=[entry])), "012") == found
        assert said(fetch_card(_json(CARD_0_3 | {"signatures": [entry]})), "012") == found

    @pytest.mark.parametrize(
        "text",
        [
            "sk-abcdefghij0123456789",
            "use Bearer abc123def456",
            "https://ann:pa55@docs.example.com/",
        ],
    )
    def test_what_looks_like_a_secret(self, text: str) -> None:
        """Redacted in the recording and in the finding."""
        found = [
            each
            for each in findings(fetch_card(card(description=text)))
            if each.rule == "A2A-CARD-016"
        ]
        assert len(found) == 1
        assert not any(secret in repr(found) for secret in ("0123456789", "abc123", "pa55"))

    def test_names_of_schemes_are_none(self) -> None:
        """Nor are scopes, signatures, and a text about tokens."""
        secured = card(
            description="Pass your API key as a header; a token lives for an hour",
            securitySchemes={"token": KEY},
            securityRequirements=[{"schemes": {"token": {"list": ["read", "write"]}}}],
            signatures=[
                {"protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0", "signature": "c2lnbmF0dXJl"}
            ],
        )
        assert said(fetch_card(secured), "016") == []


class TestReach:
    """020."""

    @pytest.mark.parametrize(
        ("url", "client", "upstream", "found"),
        [
            ("http://localhost:8000/", "192.0.2.7", "http://agent.example.com", ["WARNING"]),
            ("http://0.0.0.0:8000/", "10.0.0.7", "http://agent.example.com", ["WARNING"]),
            ("http://[::]:8000/", "[2001:db8::7]", "http://agent.example.com", ["WARNING"]),
            ("http://localhost:8000/", "192.0.2.7", "http://127.0.0.1:8000", ["INFO"]),
            ("http://localhost:8000/", "127.0.0.1", "http://agent.example.com", []),
            ("http://localhost:8000/", "[::1]", "http://agent.example.com", []),
            ("http://weather:8000/", "1.1.1.1", "http://agent.example.com", ["WARNING"]),
            ("http://weather:8000/", "1.1.1.1", "http://weather:8000", ["INFO"]),
            (
                "http://weather.default.svc.cluster.local/",
                "1.1.1.1",
                "http://agent.example.com",
                ["WARNING"],
            ),
            ("http://weather.internal/", "10.0.0.7", "http://agent.example.com", []),
            ("http://weather:8000/", "172.18.0.3", "http://agent.example.com", []),
            ("https://agent.example.com/", "1.1.1.1", "http://agent.example.com", []),
            ("http://10.0.0.5/", "1.1.1.1", "http://agent.example.com", []),
        ],
    )
    def test_urls_of_another_machine(
        self, url: str, client: str, upstream: str, found: list[str]
    ) -> None:
        """A name of a private network may be known in the network of the client, a loopback address
        is never."""
        offer = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        assert said(fetch_card(offering(offer), client=client, upstream=upstream), "020") == found

    def test_one_finding_counts_the_urls(self) -> None:
        """Those that the proxy does not replace, each once."""
        urls = (
            "http://agent:1/",
            "http://localhost:2/",
            "http://localhost:2/",
            "http://127.0.0.1:3",
            "http://a.example/",
        )
        offers = [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in urls
        ]
        script = fetch_card(offering(*offers), client="1.1.1.1", upstream="http://agent:8000")
        (summary,) = [each.summary for each in findings(script) if each.rule == "A2A-CARD-020"]
        assert summary.startswith(
            'the card names the JSONRPC interface "http://localhost:2/" and 1 other URL, which a'
        )


def _json(value: dict[str, Any]) -> str:
    """A card as it is, with its empty members; `card` and `fetch_card` are for those of 1.0."""
    return msgspec.json.encode(value).decode()


_OTHER = {"protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0", "signature": "c2lnbmF0dXJl"}
"""A signature with the id of another key."""


@pytest.mark.parametrize(
    ("signatures", "severities"),
    [
        (lambda good, bad: [good], []),
        (lambda good, bad: [bad], ["WARNING"]),
        (lambda good, bad: [bad, good], []),
        (lambda good, bad: [bad, bad], ["WARNING"]),
        (lambda good, bad: [_OTHER], []),
        (lambda good, bad: [_OTHER, bad], ["WARNING"]),
    ],
)
def test_one_signature_that_verifies_is_enough(signatures: Any, severities: list[str]) -> None:
    """A card has two signatures while its key changes; one without a key in the file is not
    judged."""
    good, bad = (sign_card(each)["signatures"][0] for each in (card(), card(name="Another")))
    script = fetch_card(card(signatures=signatures(good, bad)))
    assert [
        each.severity.name for each in findings(script) if each.rule == "A2A-CARD-013"
    ] == severities


@pytest.mark.parametrize("make", [rpc, grpc], ids=["jsonrpc", "grpc"])
def test_the_extended_card_is_judged_too(make: Any) -> None:
    altered = sign_card(card()) | {"description": "An altered text"}
    found = [
        each
        for each in findings(make("GetExtendedAgentCard", {}, altered))
        if each.rule == "A2A-CARD-013"
    ]
    assert [each.severity.name for each in found] == ["WARNING"]


def test_another_form_than_that_of_the_specification_is_information() -> None:
    """A requirement without scopes is kept by the specification and dropped by SDKs."""
    added = {"securityRequirements": [{"schemes": {"k": {"list": []}}}]}
    found = [
        each
        for each in findings(fetch_card(sign_card(card()) | added))
        if each.rule == "A2A-CARD-013"
    ]
    assert [(each.severity.name, each.evidence["path"]) for each in found] == [
        ("INFO", "signatures")
    ]
    assert found[0].summary == "the card signed by key-1 verifies only in the form: SDKs of today"
