"""Fetching a card: paths, redirects, bounds, and what an error says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from a2a_proxy.cli.card import fetch
from a2a_proxy.cli.card.fetch import fetch_card, printable_url
from a2a_proxy.cli.card.probe import Verdict, probe_interfaces
from a2a_proxy.cli.card.response import MAX_CARD_BYTES, CardResponse
from a2a_proxy.model.errors import UserError
from a2a_proxy.rules.examples.objects import card
from support_cards import PATH, Answer, http_agent

OLD_PATH = "/.well-known/agent.json"


def serve(**bodies: str | int) -> Answer:
    """An agent with a body, or a status, for each path: `card` and `old` are the well-known ones,
    `any` the rest."""

    async def answer(request: web.Request) -> web.StreamResponse:
        name = {PATH: "card", OLD_PATH: "old"}.get(request.path, "any")
        found = bodies.get(name, 404)
        return web.Response(status=found) if isinstance(found, int) else web.Response(text=found)

    return answer


async def fetch_from(answer: Answer, path: str = "") -> list[CardResponse]:
    async with http_agent(answer) as port:
        return await fetch_card(f"http://127.0.0.1:{port}{path}")


async def error_of(answer: Answer, path: str = "") -> UserError:
    with pytest.raises(UserError) as wrong:
        await fetch_from(answer, path)
    return wrong.value


@pytest.mark.parametrize("path", ["", "/"])
async def test_a_url_without_a_path_uses_the_well_known_path(path: str) -> None:
    (found,) = await fetch_from(serve(card='{"name":"a"}'), path)
    assert (found.path, found.status, found.body) == (PATH, 200, b'{"name":"a"}')
    assert found.url.endswith(PATH)
    assert dict(found.headers)[b"Content-Type"] == b"text/plain; charset=utf-8"


@pytest.mark.parametrize("first", [404, 401, 500, "<html>", "[]"])
async def test_the_older_path_is_tried_next(first: str | int) -> None:
    """Whatever the first path answers instead of a JSON object; both responses are returned."""
    before, found = await fetch_from(serve(card=first, old="{}"))
    assert (before.path, before.is_object) == (PATH, False)
    assert (found.path, found.body) == (OLD_PATH, b"{}")


async def test_a_path_is_the_only_one() -> None:
    (found,) = await fetch_from(serve(any="{}"), "/a/card")
    assert found.path == "/a/card"
    wrong = await error_of(serve(card="{}"), "/a/card")
    assert wrong.message.startswith("no agent card: 404 from http://127.0.0.1:")
    assert wrong.message.endswith("/a/card")


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        (
            "<!DOCTYPE html><title>x",
            "agent-card.json is an HTML page, not an agent card",
            "one JSON object",
        ),
        (" \n<HTML>", "is an HTML page", "check the URL"),
        ("", "is empty, not an agent card", "check the URL"),
        ("[1]", "is JSON, but not an object, so it is not an agent card", "check the URL"),
        ('{"name": ', "is not JSON: Input data was truncated", "check the URL"),
        (401, "requires authentication (status 401)", "a2a-inspect card -"),
        (403, "requires authentication (status 403)", "a2a-inspect card -"),
        (500, "no agent card: status 500 from", "check the URL"),
    ],
)
async def test_a_response_that_is_no_card(body: str | int, message: str, hint: str) -> None:
    wrong = await error_of(serve(card=body))
    assert message in wrong.message
    assert hint in wrong.hint


async def test_404_everywhere_names_both_urls() -> None:
    wrong = await error_of(serve())
    assert PATH in wrong.message
    assert OLD_PATH in wrong.message
    assert "https://HOST/PATH" in wrong.hint


def redirect(location: str, status: int = 302) -> Answer:
    """An agent that redirects all except `/there` to a location; `PORT` is its own."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/there":
            return web.Response(text="{}")
        port = request.transport.get_extra_info("sockname")[1]  # type: ignore[union-attr]
        return web.Response(
            status=status, headers={"Location": location.replace("PORT", str(port))}
        )

    return answer


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/there", "../there", "http://127.0.0.1:PORT/there"])
async def test_a_redirect_on_the_same_host_is_followed(location: str, status: int) -> None:
    (found,) = await fetch_from(redirect(location, status), "/a/card")
    assert (found.path, found.body) == ("/there", b"{}")


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    """The error names the target without its query, which may hold a token."""
    wrong = await error_of(redirect("http://localhost:PORT/there?token=s3cret"))
    assert "redirects to another host, which is not followed: http://localhost:" in wrong.message
    assert wrong.hint.startswith("if this is the agent: a2a-inspect card http://localhost:")
    assert "s3cret" not in wrong.message + wrong.hint


async def test_a_redirect_to_an_invalid_url() -> None:
    assert "redirects to an invalid URL" in (await error_of(redirect("http://[x/"))).message


async def test_a_redirect_to_itself_ends() -> None:
    assert "more than 5 redirects" in (await error_of(redirect("/again"))).message


async def test_a_redirect_without_a_location_is_a_status() -> None:
    assert "status 302" in (await error_of(serve(card=302))).message


async def test_a_slow_answer_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose body arrives slowly."""
    monkeypatch.setattr(fetch, "FETCH_SECONDS", 0.2)

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    wrong = await error_of(drip)
    assert wrong.message.endswith(f"{PATH}: no answer within 0 s")
    assert "the agent runs" in wrong.hint


async def test_a_large_answer_is_refused() -> None:
    """It is not read to its end; exactly 1 MiB is accepted."""
    largest = '{"a":"' + "x" * (MAX_CARD_BYTES - 8) + '"}'
    (found,) = await fetch_from(serve(card=largest))
    assert len(found.body) == MAX_CARD_BYTES
    wrong = await error_of(serve(card=largest + " "))
    assert "answers with more than 1 MiB: this is not an agent card" in wrong.message


async def test_nobody_listens(unused_tcp_port: int) -> None:
    with pytest.raises(UserError, match="connection refused") as wrong:
        await fetch_card(f"http://ann:s3cret@127.0.0.1:{unused_tcp_port}/?key=s3cret")
    assert "s3cret" not in wrong.value.message + wrong.value.hint


@pytest.mark.parametrize(
    "address", ["ftp://host/", "http://", "http://[x", "://x", "http://ann:s3cret@[x?k=s3cret"]
)
async def test_an_invalid_url(address: str) -> None:
    with pytest.raises(UserError, match="not an http or https URL") as wrong:
        await fetch_card(address)
    assert "s3cret" not in wrong.value.message


async def test_an_answer_that_is_not_http() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        with pytest.raises(UserError, match="its answer is not valid HTTP"):
            await fetch_card(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_credentials_in_the_url_are_sent_and_not_returned() -> None:
    asked: list[tuple[str | None, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.headers.get("Authorization"), request.query_string))
        return web.Response(text="{}")

    async with http_agent(answer) as port:
        (found,) = await fetch_card(f"http://ann:s3cret@127.0.0.1:{port}?token=s3cret")
    assert asked == [("Basic YW5uOnMzY3JldA==", "token=s3cret")]
    assert found.url == f"http://127.0.0.1:{port}{PATH}?…"


async def test_credentials_follow_a_redirect_to_the_same_port_only() -> None:
    asked: list[str | None] = []

    async def other(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Authorization"))
        return web.Response(text="{}")

    async with (
        http_agent(other) as there,
        http_agent(redirect(f"http://127.0.0.1:{there}/x")) as port,
    ):
        await fetch_card(f"http://ann:s3cret@127.0.0.1:{port}")
    assert asked == [None]


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        ("https://host/a?b=c#d", "https://host/a?…"),
        ("https://ann:pw@host:8/a", "https://host:8/a"),
        ("host:8000", "host:8000"),
        ("ann:pw@[x?b=c", "[x?…"),
    ],
)
def test_printable_url(url: str, printed: str) -> None:
    assert printable_url(url) == printed


async def test_an_untrusted_certificate() -> None:
    async with http_agent(serve(), trustme.CA().issue_cert("127.0.0.1")) as port:
        with pytest.raises(
            UserError, match="certificate is not accepted: unable to get local issuer"
        ) as wrong:
            await fetch_card(f"https://127.0.0.1:{port}")
    assert "SSL_CERT_FILE" in wrong.value.hint


async def test_a_certificate_with_a_common_name_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It names no host, although its CA is trusted."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with http_agent(serve(), ca.issue_cert("localhost")) as port:
        with pytest.raises(UserError, match="no agent card: 404"):
            await fetch_card(f"https://localhost:{port}")
    async with http_agent(serve(), ca.issue_cert(common_name="localhost")) as port:
        url = f"https://localhost:{port}"
        no_name = "hostname mismatch|empty subject alternative name"  # by the version of OpenSSL
        with pytest.raises(UserError, match=f"certificate is not accepted: ({no_name})"):
            await fetch_card(url)
        (found,) = await probe_interfaces(
            card(supportedInterfaces=[{"url": url, "protocolBinding": "JSONRPC"}])
        )
        assert found.verdict is Verdict.FAILS
        assert re.search(f"its certificate is not accepted: ({no_name})", found.words)


async def test_tls_to_a_plain_port() -> None:
    async with http_agent(serve()) as port:
        with pytest.raises(UserError, match="does not speak TLS on this port") as wrong:
            await fetch_card(f"https://127.0.0.1:{port}")
    assert f"http://127.0.0.1:{port}" in wrong.value.hint
