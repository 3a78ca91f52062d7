"""The three payloads of SendLiveMessage as dicts and bytes, and the objects in them
(manual/protocol.md "Live proposals").

Classes come from the private pools of `a2a_proto`, so that no stubs are generated and the pool of
the SDK stays free.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from a2a_proto import SchemaSet, from_dict, parse, to_dict

Json = dict[str, Any]


class Family(NamedTuple):
    """One payload: the line it belongs to, and what each side sends."""

    line: SchemaSet
    request: str
    response: str

    def ask(self, value: Json) -> bytes:
        """A client's message in bytes."""
        return from_dict(self.line, self.request, value).SerializeToString()

    def asked(self, data: bytes) -> Json:
        """And back."""
        return dict(to_dict(parse(self.line, self.request, data)))

    def tell(self, value: Json) -> bytes:
        """An agent's message in bytes."""
        return from_dict(self.line, self.response, value).SerializeToString()

    def told(self, data: bytes) -> Json:
        """And back."""
        return dict(to_dict(parse(self.line, self.response, data)))


BIDI = Family("1.0", "SendMessageRequest", "StreamResponse")
MEDIA = Family("live-1975", "LiveRequest", "LiveResponse")
UPLINKS = Family("live-2153", "StreamRequest", "StreamResponse")


def fresh() -> str:
    """A new id."""
    return str(uuid.uuid4())


def say(text: str, **members: Any) -> Json:
    """A client's message; `taskId` and `contextId` are members of it."""
    return {"messageId": fresh(), "role": "ROLE_USER", "parts": [{"text": text}], **members}


def send(text: str, *, configuration: Json | None = None, **members: Any) -> Json:
    """The same as a request."""
    made: Json = {"message": say(text, **members)}
    return made if configuration is None else made | {"configuration": configuration}


def reconnect(task_id: str) -> Json:
    """A request that names a task and says nothing (manual/protocol.md "Live rules")."""
    return {"message": {"messageId": fresh(), "role": "ROLE_USER", "taskId": task_id}}


@dataclass
class Work:
    """A task as its agent sees it: what it tells of it, and the state that it has by then."""

    id: str = field(default_factory=fresh)
    context: str = field(default_factory=fresh)
    state: str = "SUBMITTED"
    parts: list[Json] = field(default_factory=list)
    artifact_id: str = field(default_factory=fresh)
    generation: int = 0
    """Counted up by each event, as its Task has it; 0 where the agent does not count."""

    @property
    def ids(self) -> Json:
        """How others name it."""
        return {"taskId": self.id, "contextId": self.context}

    def counted(self, event: Json) -> Json:
        """The event with the next number, where there are numbers."""
        if self.generation:
            self.generation += 1
            next(iter(event.values()))["generation"] = str(self.generation)
        return event

    def reply(self, text: str) -> Json:
        """A message of the agent about it."""
        return {"messageId": fresh(), "role": "ROLE_AGENT", "parts": [{"text": text}], **self.ids}

    def _status(self, text: str) -> Json:
        stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        told: Json = {"state": f"TASK_STATE_{self.state}", "timestamp": stamp}
        return told | ({"message": self.reply(text)} if text else {})

    def task(self) -> Json:
        """All of it."""
        whole = (
            [{"artifactId": self.artifact_id, "name": "result", "parts": self.parts}]
            if self.parts
            else []
        )
        made: Json = {"id": self.id, "contextId": self.context, "status": self._status("")}
        number = {"generation": str(self.generation)} if self.generation else {}
        return {"task": made | ({"artifacts": whole} if whole else {}) | number}

    def status(self, state: str, text: str = "", **members: Any) -> Json:
        """It goes to another state."""
        self.state = state
        return self.counted({"statusUpdate": {**self.ids, "status": self._status(text), **members}})

    def chunk(self, text: str, *, last: bool = False, **members: Any) -> Json:
        """A piece more of its artifact."""
        append = bool(self.parts)
        self.parts.append({"text": text})
        artifact = {"artifactId": self.artifact_id, "name": "result", "parts": [{"text": text}]}
        flags = {name: True for name, on in (("append", append), ("lastChunk", last)) if on}
        return self.counted(
            {"artifactUpdate": {**self.ids, "artifact": artifact, **flags, **members}}
        )


def card(**capabilities: bool) -> Json:
    """What an agent says of itself; where it is, it knows when it listens."""
    return {
        "name": "Live",
        "description": "Talks while it works",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": "", "protocolBinding": "GRPC", "protocolVersion": "1.0"}],
        "capabilities": {"extendedAgentCard": True, **capabilities},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"token": {}}}],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "live", "name": "Live", "description": "Asks in between", "tags": ["live"]}
        ],
    }
