"""A recorded call as the screen sends it again, and the command line that sends it
(`a2a-proxy send`)."""

import json
import shlex
import sys
from pathlib import Path

import msgspec

from a2a_proxy.drive.edit import decode_request
from a2a_proxy.drive.load import load_plan
from a2a_proxy.drive.request import RequestedTarget
from a2a_proxy.model.values import Binding, Connection
from a2a_proxy.present import text
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key

_PROGRAM = (sys.executable, "-P", "-c", "from a2a_proxy.cli.main import main; main()")


class SendableCall(msgspec.Struct, frozen=True):
    """A recorded call that can be sent again."""

    place: str
    """With its session: `1:3`."""
    title: str
    """For people: `#3 SendMessage  jsonrpc 1.0`."""
    agent: str
    """Address of the recorded agent, or the command line of a stdio agent."""
    is_stdio: bool
    is_live: bool
    """Whether the client may send further messages while the agent answers."""
    request: str
    """The decoded request as indented JSON; empty if it cannot be edited."""


def read_sendable_call(recording: Recording, key: int) -> SendableCall | str:
    """Return the call with this key, or why it cannot be sent again."""
    row = recording.read_exchange(key)
    if row is None:
        return "the call is no longer in the recording"
    plan = load_plan(recording, [row], RequestedTarget())
    title = f"{label_place(row.session, row.exchange.id)} {text.exchange_title(row.exchange)}"
    if not plan.steps:
        return f"{title} cannot be sent: {plan.skipped[0].reason}"
    exchange, request = row.exchange, decode_request(plan.steps[0])
    connection = recording.read_connection(make_key(row.session, exchange.connection))
    return SendableCall(
        place=f"{row.session}:{exchange.id}",
        title=f"{title}  {text.binding_and_dialect(exchange)}",
        agent=_agent_address(connection.connection) if connection is not None else "",
        is_stdio=exchange.binding is Binding.STDIO,
        is_live=exchange.operation == "SendLiveMessage" and exchange.binding is Binding.GRPC,
        request="" if request is None else json.dumps(request, indent=2, ensure_ascii=False) + "\n",
    )


def make_send_command(
    recording: Path, call: SendableCall, agent: str, new_recording: Path, request: Path | None
) -> list[str]:
    """Return the command line that sends the call to an agent, with the request in a file if there
    is one.

    Raises:
        ValueError: the command line of a stdio agent has an open quote.
    """
    words = [*_PROGRAM, "send", "--record", str(new_recording)]
    words += ["--request", str(request)] if request is not None else []
    if not call.is_stdio:
        return [*words, "--upstream", agent, "--", str(recording), call.place]
    return [*words, str(recording.absolute()), call.place, "--", *shlex.split(agent)]


def _agent_address(connection: Connection) -> str:
    """Return the address as an option takes it."""
    is_secure = connection.tls is not None and connection.tls.upstream is not None
    return (
        f"https://{connection.upstream}"
        if is_secure and "://" not in connection.upstream
        else connection.upstream
    )
