"""A2A objects of protocol 1.0 for examples, valid unless stated otherwise, with the times of the
scripts."""

import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

Json = dict[str, Any]

TASK, CONTEXT = "t1", "c1"
TASK_PARAMS = {"id": TASK}
"""Parameters of a call about the task."""


def message(text: str = "hello", *, id: str = "m1", **members: Any) -> Json:
    """Return a client's message."""
    return {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]} | members


def reply(text: str = "done", *, id: str = "r1", **members: Any) -> Json:
    """Return an agent's message."""
    return {
        "messageId": id,
        "role": "ROLE_AGENT",
        "contextId": CONTEXT,
        "parts": [{"text": text}],
    } | members


def send(
    text: str = "hello", *, id: str = "m1", configuration: Json | None = None, **members: Any
) -> Json:
    """Return the parameters of a send; `send(taskId="t1")` continues a task."""
    made: Json = {"message": message(text, id=id, **members)}
    return made if configuration is None else made | {"configuration": configuration}


def state(name: str, *, second: int = 0, **members: Any) -> Json:
    """Return a status such as `state("WORKING")`; `second` is the second of its timestamp."""
    stamp = f"2026-01-01T00:00:{second:02d}.000Z"
    return {"state": f"TASK_STATE_{name}", "timestamp": stamp} | members


def task(name: str = "COMPLETED", *, id: str = TASK, second: int = 0, **members: Any) -> Json:
    """Return a task in a state."""
    return {"id": id, "contextId": CONTEXT, "status": state(name, second=second)} | members


def status(name: str, *, second: int = 0, message: Json | None = None, **members: Any) -> Json:
    """Return a wrapped status update; `message` is the message of the status."""
    inner = state(name, second=second) | ({"message": message} if message else {})
    return {"statusUpdate": {"taskId": TASK, "contextId": CONTEXT, "status": inner} | members}


def artifact(text: str = "x", *, id: str = "a1", name: str = "result", **members: Any) -> Json:
    """Return a complete artifact."""
    return {"artifactId": id, "name": name, "parts": [{"text": text}]} | members


def chunk(text: str = "x", *, id: str = "a1", **members: Any) -> Json:
    """Return a wrapped artifact update, such as `chunk("y", append=True, lastChunk=True)`."""
    return {
        "artifactUpdate": {"taskId": TASK, "contextId": CONTEXT, "artifact": artifact(text, id=id)}
        | members
    }


def snapshot(name: str = "SUBMITTED", **members: Any) -> Json:
    """Return a task, wrapped as in a stream or in the answer to a send."""
    return {"task": task(name, **members)}


def agent_reply(text: str = "done", **members: Any) -> Json:
    """Return a wrapped message of the agent."""
    return {"message": reply(text, **members)}


def card(**members: Any) -> Json:
    """Return an agent card with a JSON-RPC, a REST and a gRPC interface; `card(capabilities={})`
    changes a member."""
    here = "http://localhost:8000"
    made: Json = {
        "name": "Example",
        "description": "An agent of an example",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": f"{here}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": here, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "localhost:8000", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "echo", "name": "Echo", "description": "Says it again", "tags": ["text"]}
        ],
    }
    return {name: value for name, value in (made | members).items() if value is not None}


_CARD_SECRET = b"a secret of examples, 32 bytes.."
CARD_KEYS = b'{"kty": "oct", "kid": "key-1", "k": "%s"}' % urlsafe_b64encode(_CARD_SECRET).rstrip(
    b"="
)
"""The file of `--card-keys` that verifies the cards of `sign_card`."""


def sign_card(unsigned: Json) -> Json:
    """Return a card of ASCII texts without empty members, signed with HS256, as every form has
    it."""
    head = _base64url(b'{"alg":"HS256","kid":"key-1","typ":"JOSE"}')
    text = json.dumps(unsigned, separators=(",", ":"), sort_keys=True)
    signature = hmac.digest(_CARD_SECRET, f"{head}.{_base64url(text.encode())}".encode(), "sha256")
    return unsigned | {"signatures": [{"protected": head, "signature": _base64url(signature)}]}


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def error_info(reason: str, **metadata: str) -> Json:
    """Return an ErrorInfo with the A2A domain."""
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    made: Json = {"@type": kind, "reason": reason, "domain": "a2a-protocol.org"}
    return made | ({"metadata": metadata} if metadata else {})


def input_required(text: str = "which one?", *, second: int = 0, id: str = "q1") -> Json:
    """Return an INPUT_REQUIRED status with its question:
    `snapshot("INPUT_REQUIRED", status=input_required())`."""
    return state("INPUT_REQUIRED", second=second, message=reply(text, id=id, taskId=TASK))
