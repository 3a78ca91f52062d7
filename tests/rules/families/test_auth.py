"""Rules about authentication: kinds of credentials, distances, bindings, near misses."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import fetch_card, grpc, http, rest, rest_error, rpc
from a2a_proxy.rules.examples.objects import card, send, snapshot, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.secret_places import secret_paths
from support_rules import findings

GET = ("GetTask", {"id": "t1"}, task())
BEARER = {"Authorization": "Bearer t0ken-of-ann"}
HOOK = {"taskId": "t1", "url": "https://client.example.com/hook"}
STORED = HOOK | {"id": "p1"}
SET = "CreateTaskPushNotificationConfig"
SCHEMES: dict[str, dict[str, Any]] = {
    "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
    "oauth": {"oauth2SecurityScheme": {"flows": {}}},
    "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Agent-Pass"}},
    "query": {"apiKeySecurityScheme": {"location": "query", "name": "pass"}},
    "mtls": {"mtlsSecurityScheme": {}},
}


def said(script: Script, rule: str) -> list[str]:
    """Severities of what one rule says."""
    return [each.severity.name for each in findings(script) if each.rule == f"A2A-AUTH-{rule}"]


def secured(*names: str) -> Script:
    """A card that requires one of these schemes."""
    return fetch_card(
        card(
            securitySchemes={name: SCHEMES[name] for name in names},
            securityRequirements=[{"schemes": {name: {"list": []}}} for name in names],
        )
    )


class TestTransport:
    """001, 004, 010."""

    @pytest.mark.parametrize(
        "headers",
        [
            BEARER,
            {"Cookie": "session=abcdef"},
            {"x-api-key": "k-1234567"},
            {"X-Auth-Token": "t-1234567"},
        ],
    )
    def test_kinds(self, headers: dict[str, str | None]) -> None:
        """Whatever carries a credential."""
        assert said(rpc(*GET, headers=headers, upstream="http://agent.example.com"), "001") == [
            "ERROR"
        ]

    @pytest.mark.parametrize(
        ("upstream", "found"),
        [
            ("http://localhost:8000", []),
            ("http://127.0.0.1:8000", []),
            ("http://[::1]:8000", []),
            ("https://agent.example.com", []),
            ("http://10.0.0.5:8000", ["WARNING"]),
            ("http://agent:8000", ["WARNING"]),
            ("http://agent.example.com", ["ERROR"]),
        ],
    )
    def test_distances(self, upstream: str, found: list[str]) -> None:
        """Over HTTP/1.1 and HTTP/2."""
        assert said(rpc(*GET, headers=BEARER, upstream=upstream), "001") == found
        metadata: dict[str, str | None] = {"authorization": "Bearer t0ken-of-ann"}
        assert said(grpc(*GET, headers=metadata, upstream=upstream), "001") == found
        assert said(rpc(*GET, upstream=upstream), "001") == []

    def test_notifications(self) -> None:
        """The agent is the client of a webhook."""
        hook: dict[str, str | None] = {"X-A2A-Notification-Token": "t0ken-1"}
        for scheme, found in (("http", ["ERROR"]), ("https", [])):
            config = HOOK | {"url": f"{scheme}://client.example.com/hook"}
            options: dict[str, Any] = {
                "upstream": f"{scheme}://client.example.com",
                "host": "client.example.com",
            }
            body = (
                '{"task": {"id": "t1", "contextId": "c1", "status": {"state": '
                '"TASK_STATE_COMPLETED"}}}'
            )
            post = http("POST", "/hook", body, headers=hook, status=204, **options)
            assert said(rpc(SET, config, STORED) + post, "001") == found

    def test_the_url(self) -> None:
        """What the card wants there is an information; ids, pages and signatures are no keys."""
        assert said(rest("GET", "/tasks/t1?access_token=abcdef", None, task()), "004") == [
            "WARNING"
        ]
        assert said(
            secured("query") + rest("GET", "/tasks/t1?pass=abcdef", None, task()), "004"
        ) == ["INFO"]
        target = "/tasks?pageToken=abc&contextId=c1&pageSize=5&signature=abcdef"
        listed = {"tasks": [task()], "nextPageToken": "", "pageSize": 5, "totalSize": 1}
        assert said(rest("GET", target, None, listed), "004") == []

    def test_push_configurations(self) -> None:
        """In a message, with credentials; and a webhook with http."""
        config = {
            "url": HOOK["url"],
            "authentication": {"scheme": "Bearer", "credentials": "t0ken-1"},
        }
        embedded = send(configuration={"taskPushNotificationConfig": config})
        far = "http://agent.example.com"
        assert said(rpc("SendMessage", embedded, snapshot(), upstream=far), "010") == ["WARNING"]
        assert said(grpc("SendMessage", embedded, snapshot(), upstream=far), "010") == ["WARNING"]
        assert said(rpc("SendMessage", embedded, snapshot()), "010") == []
        plain = HOOK | {"url": "http://client.example.com/hook"}
        assert said(rpc(SET, plain | {"token": "t0ken-1"}, STORED), "010") == ["WARNING"]
        assert said(rpc(SET, plain, STORED), "010") == []
        body = plain | {"token": "t0ken-1"}
        assert said(rest("POST", "/tasks/t1/pushNotificationConfigs", body, STORED), "010") == [
            "WARNING"
        ]


class TestAccess:
    """002, 003, 005, 006, 007."""

    def test_who_needs_no_credentials(self) -> None:
        """Certificates are not seen, an empty alternative asks for nothing, failures are fine."""
        assert said(secured("bearer") + rpc(*GET), "002") == ["WARNING"]
        assert said(secured("bearer") + grpc(*GET), "002") == ["WARNING"]
        assert said(secured("bearer", "mtls") + rpc(*GET), "002") == []
        optional = card(
            securitySchemes=SCHEMES, securityRequirements=[{"schemes": {"key": {"list": []}}}, {}]
        )
        assert said(fetch_card(optional) + rpc(*GET), "002") == []
        assert said(secured("bearer") + http("GET", "/tasks/t1", status=401), "002") == []
        assert said(rpc(*GET) + secured("bearer"), "002") == []

    def test_a_scheme_s_own_names(self) -> None:
        """The card says where the key goes."""
        key: dict[str, str | None] = {"X-Agent-Pass": "open sesame"}
        assert said(secured("key") + rpc(*GET, headers=key), "002") == []
        assert said(secured("key") + rpc(*GET, headers=key), "007") == []
        assert said(secured("oauth") + rpc(*GET, headers=BEARER), "007") == []
        assert said(
            secured("oauth") + rpc(*GET, headers={"Authorization": "Basic YW5uOnBhNTU="}), "007"
        ) == ["WARNING"]
        assert said(secured("key") + rpc(*GET, headers=BEARER), "007") == ["WARNING"]

    def test_one_of_several_is_enough(self) -> None:
        """A gateway may want another one; cookies are everybody's."""
        both: dict[str, str | None] = BEARER | {"x-api-key": "k-1234567"}
        assert said(secured("bearer") + rpc(*GET, headers=both), "007") == []
        assert said(secured("bearer") + rpc(*GET, headers={"Cookie": "lb=abcdef"}), "007") == []
        assert said(fetch_card() + rpc(*GET, headers=BEARER), "007") == []

    def test_no_challenge(self) -> None:
        """On a card as well; 403 needs none."""
        assert said(http("GET", "/.well-known/agent-card.json", status=401, version=""), "003") == [
            "WARNING"
        ]
        assert said(http("GET", "/tasks/t1", status=403), "003") == []

    def test_extended_cards(self) -> None:
        """All bindings; not where certificates prove who it is, nor 0.3's gRPC, which may give the
        public card."""
        call = "GetExtendedAgentCard"
        assert said(rest("GET", "/extendedAgentCard", None, card()), "005") == ["ERROR"]
        assert said(grpc(call, {}, card()), "005") == ["ERROR"]
        assert (
            said(grpc(call, {}, card(), headers={"authorization": "Bearer t0ken-of-ann"}), "005")
            == []
        )
        assert said(secured("mtls") + rpc(call, None, card()), "005") == []
        old = {"name": "x", "url": "http://localhost:8000/", "skills": []}
        assert said(rpc("agent/getAuthenticatedExtendedCard", {}, old, version=""), "005") == [
            "ERROR"
        ]

    def test_existence(self) -> None:
        """In all bindings; not for the owner, and not for tasks whose start was not seen."""
        begun = rpc("SendMessage", send(), snapshot("WORKING"), headers=BEARER)
        ben: dict[str, str | None] = {"authorization": "Bearer t0ken-of-ben"}
        denied = rest_error(403, "PERMISSION_DENIED", "", details=[])
        assert said(begun + grpc("GetTask", {"id": "t1"}, status=7, headers=ben), "006") == [
            "WARNING"
        ]
        asked = ("GET", "/tasks/t1", None, denied)
        assert said(begun + rest(*asked, status=403, headers=ben), "006") == ["WARNING"]
        assert said(begun + rest(*asked, status=403, headers=BEARER), "006") == []
        assert said(begun + rest(*asked, status=403), "006") == []
        assert said(rest(*asked, status=403, headers=ben), "006") == []


class TestMessages:
    """008."""

    def test_only_while_it_is_waited_for(self) -> None:
        """And not where an extension was named."""
        asks = rpc("SendMessage", send("book it"), snapshot("AUTH_REQUIRED"))
        token = send(id="m2", taskId="t1", parts=[{"data": {"password": "pa55w0rd"}}])
        answer = snapshot("COMPLETED", second=1)
        assert said(asks + rpc("SendMessage", token, answer), "008") == ["WARNING"]
        assert said(asks + grpc("SendMessage", token, answer), "008") == ["WARNING"]
        extension: dict[str, str | None] = {"A2A-Extensions": "https://example.com/ext/login/v1"}
        assert said(asks + rpc("SendMessage", token, answer, headers=extension), "008") == []
        needs = rpc("SendMessage", send("book it"), snapshot("INPUT_REQUIRED"))
        assert said(needs + rpc("SendMessage", token, answer), "008") == []

    def test_prose_about_tokens(self) -> None:
        """Talk of passwords is no password."""
        asks = rpc("SendMessage", send("book it"), snapshot("AUTH_REQUIRED"))
        text = send("I do not have a token, and the password is in the safe", id="m2", taskId="t1")
        assert said(asks + rpc("SendMessage", text, snapshot("COMPLETED", second=1)), "008") == []


def test_a_session_is_no_credential() -> None:
    """It is hidden, but does not identify the client: it may differ between calls."""
    headers = {"X-Session-Id": "s-1234567890", "DPoP": "proof-1", "X-OTP": "471147"}
    script = secured("bearer") + rest(
        "GET", "/tasks/t1?sid=s-1234567890&otp=471147", None, task(), headers=headers
    )
    assert not [each for each in findings(script) if each.rule in ("A2A-AUTH-004", "A2A-AUTH-007")]
    assert said(secured("bearer") + rpc(*GET, headers={"x-api-key": "k-1234567890"}), "007")


@pytest.mark.parametrize(
    "data", [{"password": ["hunter22x"]}, {"credentials": {"pw": "x", "n": 1}}, {"apiKey": 4711471}]
)
def test_a_credential_below_a_name_is_found_in_a_message(data: object) -> None:
    """As the redaction finds it: strings and numbers."""
    assert list(secret_paths([{"data": data}]))
    assert not list(secret_paths([{"data": {"usage": {"total_tokens": 512}, "sessions": [1]}}]))
