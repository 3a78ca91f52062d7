"""Fetch an agent card from a URL, with bounds on time, size and redirects."""

import asyncio
import ssl

import aiohttp
from yarl import URL

from a2a_proxy import __version__
from a2a_proxy.cli.card.response import MAX_CARD_BYTES, CardResponse, describe_text
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.bindings.card import WELL_KNOWN_PATHS
from a2a_proxy.relay.tls import create_client_context

FETCH_SECONDS = 10.0
"""Maximum time for one request with its redirects, seconds."""
USER_AGENT = f"a2a-inspect/{__version__}"
_MAX_REDIRECTS = 5
_SAVE_HINT = "fetch the card with your own client and check the file: curl ... | a2a-inspect card -"


class _Response(aiohttp.ClientResponse):
    """A response that keeps the client's address: its connection is released before a short body is
    read."""

    client = ""
    """The client's host; empty before the request is sent."""

    async def start(self, connection: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Read the head of the response."""
        if connection.transport is not None:
            self.client = connection.transport.get_extra_info("sockname")[0]
        return await super().start(connection)


async def fetch_card(address: str) -> list[CardResponse]:
    """Return the responses to the requests for a card, in order; the last one has a JSON object.

    A URL without a path is tried with each of `WELL_KNOWN_PATHS`.

    Raises:
        UserError: the URL is invalid, the host cannot be reached, or no response is a JSON object.
    """
    url = _parse_url(address)
    paths = (url.path,) if url.path not in ("", "/") else WELL_KNOWN_PATHS
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": USER_AGENT,
    }
    responses: list[CardResponse] = []
    connector = aiohttp.TCPConnector(ssl=create_client_context())
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=_Response,
    ) as http:
        for path in paths:
            responses.append(
                await _fetch_url(
                    http, url if path == url.path else url.with_path(path).with_query(url.query)
                )
            )
            if responses[-1].is_object:
                return responses
    raise _explain_responses(responses)


def printable_url(url: URL | str) -> str:
    """Return the URL without user information, query and fragment, which may hold secrets; an
    ellipsis replaces the query. Text that is not a URL is returned up to its `?`, without the part
    before an `@`.
    """
    try:
        parsed = URL(url) if isinstance(url, str) else url
        plain = (
            str(parsed.with_user(None).with_query(None).with_fragment(None))
            if parsed.absolute
            else ""
        )
    except ValueError:
        parsed, plain = None, ""
    if parsed is None or not plain:
        before, question, _ = str(url).partition("?")
        return before.rpartition("@")[2] + ("?…" if question else "")
    return plain + ("?…" if parsed.query_string else "")


def explain_connection_error(error: Exception) -> str:
    """Return the reason of a failed HTTP request in words."""
    if isinstance(error, TimeoutError):
        return f"no answer within {FETCH_SECONDS:.0f} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        wrong = error.certificate_error
        words = (
            wrong.verify_message if isinstance(wrong, ssl.SSLCertVerificationError) else str(wrong)
        )
        return f"its certificate is not accepted: {words.lower().rstrip('.')}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "it does not speak TLS on this port"
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
        refused = isinstance(inner, ConnectionRefusedError)
        return "connection refused" if refused else (inner.strerror or str(inner)).lower()
    if isinstance(
        error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | ConnectionResetError
    ):
        return "it closed the connection before the end of its answer"
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.http_exceptions.HttpProcessingError):
        return "its answer is not valid HTTP"
    return str(error) or type(error).__name__


async def read_bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body, or its first `limit` + 1 bytes if it is longer."""
    data = bytearray()
    async for block in response.content.iter_chunked(1 << 16):
        data += block
        if len(data) > limit:
            break
    return bytes(data[: limit + 1])


def _parse_url(address: str) -> URL:
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UserError(
            f"cannot fetch {printable_url(address)}: not an http or https URL",
            "write https://HOST[:PORT]",
        )
    return url


async def _fetch_url(http: aiohttp.ClientSession, url: URL) -> CardResponse:
    """Return the response of one URL, after redirects on the same host. Raises UserError."""
    first = url
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            for _ in range(_MAX_REDIRECTS + 1):
                async with http.get(url, allow_redirects=False) as response:
                    target = response.headers.get("Location", "")
                    if response.status not in (301, 302, 303, 307, 308) or not target:
                        return await _read_response(response, url)
                    url = _follow_redirect(url, target)
    except (aiohttp.ClientError, TimeoutError, OSError) as wrong:
        hint = "check host and port, and that the agent runs"
        if isinstance(wrong, aiohttp.ClientConnectorCertificateError):
            hint = "to trust another CA: export SSL_CERT_FILE=FILE"
        elif isinstance(wrong, aiohttp.ClientConnectorSSLError):
            hint = f"if it speaks plain HTTP: {printable_url(url.with_scheme('http'))}"
        raise UserError(
            f"cannot fetch {printable_url(url)}: {explain_connection_error(wrong)}", hint
        ) from wrong
    raise UserError(
        f"cannot fetch {printable_url(first)}: more than {_MAX_REDIRECTS} redirects", _SAVE_HINT
    )


async def _read_response(response: aiohttp.ClientResponse, url: URL) -> CardResponse:
    body = await read_bounded(response, MAX_CARD_BYTES)
    if len(body) > MAX_CARD_BYTES:
        raise UserError(
            f"{printable_url(url)} answers with more than 1 MiB: this is not an agent card",
            "name the URL of the card itself",
        )
    client = response.client if isinstance(response, _Response) else ""
    headers = tuple(response.raw_headers)
    return CardResponse(
        printable_url(url), url.path, response.status, response.reason or "", headers, body, client
    )


def _follow_redirect(url: URL, target: str) -> URL:
    """Return the URL of a redirect. Raises UserError if it leaves the host or gives up TLS."""
    try:
        new = url.join(URL(target))
    except ValueError:
        raise UserError(
            f"{printable_url(url)} redirects to an invalid URL", "name the URL of the card itself"
        ) from None
    if new.host == url.host and new.scheme in (url.scheme, "https"):
        # The user information is for the first address only.
        same = url.user and new.origin() == url.origin()
        return new.with_user(url.user).with_password(url.password) if same else new.with_user(None)
    why = "another host" if new.host != url.host else "an unencrypted URL"
    raise UserError(
        f"{printable_url(url)} redirects to {why}, which is not followed: {printable_url(new)}",
        f"if this is the agent: a2a-inspect card {printable_url(new)}",
    )


def _explain_responses(responses: list[CardResponse]) -> UserError:
    """Return the error of responses without a card; the first status other than 404 decides."""
    found = next((each for each in responses if each.status != 404), None)
    if found is None:
        listed = " and ".join(each.url for each in responses)
        return UserError(
            f"no agent card: 404 from {listed}",
            "name the card's path too: a2a-inspect card https://HOST/PATH",
        )
    if found.status in (401, 403):
        return UserError(f"{found.url} requires authentication (status {found.status})", _SAVE_HINT)
    if found.status != 200:
        return UserError(
            f"no agent card: status {found.status} from {found.url}",
            "check the URL, or name the card's path too: a2a-inspect card https://HOST/PATH",
        )
    return UserError(
        f"{found.url} {describe_text(found.body)}", "check the URL: a card is one JSON object"
    )
