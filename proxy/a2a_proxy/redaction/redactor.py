"""The redactor: values in, the same values without credentials out.

What `Redactor` promises: a value without secrets comes back as the same object; `size` stays the true size on the wire,
whatever the length of the redacted payload; `redacted` names what was replaced; where redaction itself fails, the
payload is dropped and `note` says so. A secret that stood in a known place is replaced wherever it occurs after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.task import ArtifactState, Task
from a2a_proxy.model.wire import Headers
from a2a_proxy.redaction import payload
from a2a_proxy.redaction.payload import fields_clean
from a2a_proxy.redaction.policy import DEFAULT, RedactionPolicy
from a2a_proxy.redaction.policy_scrubber import Policed
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_names import card_names, fold

_CARD: Final = EventKind.CARD
_CACHED: Final = 2048
_FRAME_TEXTS: Final = ("task_id", "context_id", "message_id", "artifact_id", "rpc_id", "note")
_EXCHANGE_TEXTS: Final = (
    "method",
    "target",
    "authority",
    "rpc_id",
    "error",
    "how",
    "task_id",
    "context_id",
    "traceparent",
    "sent_traceparent",
    "version_header",
    "extensions",
)
_CONNECTION_TEXTS: Final = ("client", "listen", "upstream", "peer", "how")
_FINDING_TEXTS: Final = ("summary", "task_id")
_TASK_TEXTS: Final = ("agent", "task_id", "context_id", "tenant")
_ARTIFACT_TEXTS: Final = ("artifact_id", "name")
_MANY: Final = 64
_SIDES: Final = (("request_headers", "header"), ("response_headers", "response-header"), ("trailers", "trailer"))
_FAILED: Final = "redaction failed, dropped"
_UNSIEVED: Final = -1
"""No state of what was learned."""

_V = TypeVar("_V", Frame, Exchange, Connection, Finding, Task, ArtifactState)
_Artifacts = tuple[ArtifactState, ...]


class Heads(Protocol):
    """What is looked at of the exchange of a frame; it may still be open."""

    @property
    def id(self) -> int:
        """Number within the session."""

    @property
    def target(self) -> str:
        """Request target."""

    @property
    def request_headers(self) -> Headers:
        """As the client sent them."""

    @property
    def response_headers(self) -> Headers:
        """As the agent sent them; empty before."""


class Redactor:
    """Redacts the values of one session. Not thread-safe.

    `key` is the secret of the labels; it stays in the state directory, never in a recording. With the policy `none`
    everything comes back as it is.
    """

    def __init__(self, key: bytes, policy: RedactionPolicy = DEFAULT) -> None:
        self._enabled = not policy.none
        self._scrub: Scrubber = Scrubber(key) if policy.plain or policy.none else Policed(key, policy)
        self._suspicious = self._scrub.suspicious
        self._taught: dict[int, tuple[Headers, Headers]] = {}
        self._heads: dict[Headers, Headers] = {}
        self._clean_texts: set[str] = {""}
        self._generation = 0
        self._artifacts_of: dict[tuple[str, str], tuple[int, _Artifacts, _Artifacts]] = {}
        """Of tasks with many artifacts those seen last, and how they are without secrets, at that generation."""

    def sieve(self, frames: Sequence[Frame | Finding]) -> int:
        """Look at the payloads of several frames at once, which costs half of one by one.

        What it gives is for `frame`, which then spares itself the look unless something was learned in between.
        """
        if not self._enabled:
            return _UNSIEVED
        payloads = [frame.payload for frame in frames if type(frame) is Frame]
        try:
            # No pattern reaches over the end of a line, and none needs the beginning of the data.
            suspicious = self._suspicious(payloads[0] if len(payloads) == 1 else b"\n".join(payloads))
        except Exception:
            return _UNSIEVED
        return _UNSIEVED if suspicious else self._scrub.seen.generation

    def frame(self, frame: Frame, exchange: Heads | None, sieved: int = _UNSIEVED) -> Frame:
        """The frame without secrets; the same object where it has none. `exchange` is the one it belongs to, raw."""
        if not self._enabled:
            return frame
        try:
            if exchange is not None:
                taught = self._taught.get(exchange.id)
                if (
                    taught is None
                    or taught[0] is not exchange.request_headers
                    or taught[1] is not exchange.response_headers
                ):
                    self._learn_exchange(exchange)
            data = frame.payload
            generation = self._scrub.seen.generation
            if self._generation != generation:
                self._forget()
            clean = self._clean_texts
            if (
                data
                and not frame.truncated
                and fields_clean(frame.schema, data)
                and (sieved == generation or not self._suspicious(data))
                and (frame.framing in clean or self._framing(frame.framing) is frame.framing)
                and (frame.note in clean or self.text(frame.note) is frame.note)
                and frame.event is not _CARD
            ):
                return frame
            return self._frame(frame)
        except Exception:
            return _dropped(frame)

    def _frame(self, frame: Frame) -> Frame:
        if frame.event is _CARD and frame.schema == "json":
            self._learn_card_text(frame.payload)
        new, paths = self._payload(frame)
        changes: dict[str, Any] = self._texts_of(frame, _FRAME_TEXTS)
        if (framing := self._framing(frame.framing)) is not frame.framing:
            changes["framing"] = framing
        paths += [name for name in changes if name not in paths]
        if new != frame.payload:
            changes["payload"] = new
            if frame.truncated:
                # A digest of the whole would let a guess of the secret be tried.
                changes["sha256"] = b""
        if not changes:
            return frame
        return msgspec.structs.replace(frame, **changes, redacted=_union(frame.redacted, paths))

    def _payload(self, frame: Frame) -> tuple[bytes, list[str]]:
        """The payload, clean. Twice where the first look taught something, as with headers."""
        if not frame.payload:
            return frame.payload, []
        before = self._scrub.seen.generation
        clean = payload.redact(self._scrub, frame.schema, frame.payload, cut=frame.truncated)
        if self._scrub.seen.generation == before:
            return clean
        return payload.redact(self._scrub, frame.schema, frame.payload, cut=frame.truncated)

    def exchange(self, exchange: Exchange) -> Exchange:
        """The exchange without secrets in headers, trailers, target, authority and error text."""
        if not self._enabled:
            return exchange
        try:
            self._learn_exchange(exchange)
            changes: dict[str, Any] = self._texts_of(exchange, _EXCHANGE_TEXTS)
            paths = list(changes)
            for side, word in _SIDES:
                raw: Headers = getattr(exchange, side)
                clean = self._headers(raw)
                if clean is not raw:
                    changes[side] = clean
                    paths += [
                        f"{word}:{name.decode('latin-1').lower()}"
                        for (name, old), (_, new) in zip(raw, clean, strict=True)
                        if old != new
                    ]
            if not changes:
                return exchange
            return msgspec.structs.replace(exchange, **changes, redacted=_union(exchange.redacted, paths))
        except Exception:
            return msgspec.structs.replace(
                exchange, request_headers=(), response_headers=(), trailers=(), target="", authority="", error=_FAILED
            )

    def connection(self, connection: Connection) -> Connection:
        """The connection without user info in its addresses and secrets in how it ended."""
        return self._plain(connection, _CONNECTION_TEXTS)

    def task(self, task: Task) -> Task:
        """The task; its ids get the same labels as in frames, should one hold a secret."""
        if not self._enabled:
            return task
        clean, artifacts = self._plain(task, _TASK_TEXTS), task.artifacts
        if artifacts:
            found = self._artifacts((task.agent, task.task_id), artifacts)
            if found != artifacts:
                return msgspec.structs.replace(clean, artifacts=found)
        return clean

    def _artifacts(self, key: tuple[str, str], artifacts: _Artifacts) -> _Artifacts:
        """Of many, those that are the objects that came last time are not looked at again."""
        generation = self._scrub.seen.generation
        known = self._artifacts_of.pop(key, None)
        before, clean = known[1:] if known is not None and known[0] == generation else ((), ())
        found = [
            was if one is each else self._artifact(each)
            for one, was, each in zip(before, clean, artifacts, strict=False)
        ]
        made = (*found, *map(self._artifact, artifacts[len(before) :]))
        if len(artifacts) > _MANY:
            self._artifacts_of[key] = (generation, artifacts, made)
            if len(self._artifacts_of) > _MANY:
                del self._artifacts_of[next(iter(self._artifacts_of))]
        return made

    def _artifact(self, artifact: ArtifactState) -> ArtifactState:
        return self._plain(artifact, _ARTIFACT_TEXTS)

    def finding(self, finding: Finding) -> Finding:
        """The finding without secrets in summary and evidence; evidence under a secret's name is one."""
        if not self._enabled:
            return finding
        finding = self._plain(finding, _FINDING_TEXTS)
        try:
            evidence = {self.text(name): self._named(name, value) for name, value in finding.evidence.items()}
        except Exception:
            evidence = {"note": _FAILED}
        return finding if evidence == finding.evidence else msgspec.structs.replace(finding, evidence=evidence)

    def text(self, text: str) -> str:
        """Any line for people: error texts, command lines, console. The same object where it has no secret."""
        if not self._enabled:
            return text
        if self._generation != self._scrub.seen.generation or len(self._clean_texts) >= _CACHED:
            self._forget()
        if text in self._clean_texts:
            return text
        try:
            return self._text(text)
        except Exception:
            return _FAILED

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        """A command line in words, where a secret may follow its flag as a word of its own."""
        clean: list[str] = []
        for before, word in zip(("", *words), words, strict=False):
            flag = before[2:] if before.startswith("--") and "=" not in before else ""
            clean.append(self._named(flag, word) if self._enabled and flag else self.text(word))
        return tuple(clean)

    def learn_card(self, card: dict[str, Any]) -> None:
        """The names under which an agent card, of any dialect, wants its API keys: they hold secrets from now on."""
        new = card_names(card) - self._scrub.names
        if new:
            self._scrub.learn_names(new)

    def label(self, secret: bytes) -> bytes:
        """The label of a secret, as bytes."""
        return self._scrub.label(secret)

    def save(self) -> dict[str, Any]:
        """What was learned, as plain values. It holds secrets: for the 0600 snapshot only, never for a recording."""
        return {"names": sorted(self._scrub.names), "seen": self._scrub.seen.save()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Learn again what `save` gave."""
        self._scrub.learn_names(set(saved["names"]))
        self._scrub.seen.restore(saved["seen"])

    def _plain(self, value: _V, names: tuple[str, ...]) -> _V:
        if not self._enabled:
            return value
        changes = self._texts_of(value, names)
        return msgspec.structs.replace(value, **changes) if changes else value

    def _texts_of(self, value: object, names: tuple[str, ...]) -> dict[str, Any]:
        if self._generation != self._scrub.seen.generation:
            self._forget()
        changes = {}
        for name in names:
            old: str = getattr(value, name)
            if old not in self._clean_texts and (new := self.text(old)) is not old:
                changes[name] = new
        return changes

    def _framing(self, text: str) -> str:
        """What stood around a payload; of a header block (stdio) field by field. The same object where it is clean."""
        if "\n\0" not in text or not self._enabled:
            return self.text(text)
        lines = [self._field(line) for line in text.split("\n")]
        clean = self.text("\n".join(lines))
        if clean != text:
            return clean
        self._clean_texts.add(text)
        return text

    def _field(self, line: str) -> str:
        name, colon, value = line.partition(":")
        raw = value.strip()
        if not colon or not raw:
            return line
        data = raw.encode("latin-1", "replace")
        clean = payload.header(self._scrub, name.strip().encode("latin-1", "replace"), data)
        return line if clean == data else name + colon + value.replace(raw, clean.decode("latin-1"))

    def _text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self._scrub.column(data) or self._scrub.text(data)
        if clean == data:
            self._clean_texts.add(text)
            return text
        return clean.decode("utf-8", "surrogatepass")

    def _forget(self) -> None:
        """What was clean before a secret became known may not be clean now."""
        self._clean_texts = {""}
        self._heads = {}
        self._generation = self._scrub.seen.generation

    def _named(self, name: str, value: str) -> str:
        if self._scrub.names_secret(name):
            new = self._scrub.known(fold(name), value.encode("utf-8", "surrogatepass"))
            return value if new is None else new.decode("utf-8", "replace")
        return self.text(value)

    def _learn_exchange(self, exchange: Heads) -> None:
        """Meet the secrets of the head before the body, where they may occur again."""
        if len(self._taught) >= _CACHED:
            del self._taught[next(iter(self._taught))]
        self._taught[exchange.id] = (exchange.request_headers, exchange.response_headers)
        self._headers(exchange.request_headers)
        self._headers(exchange.response_headers)
        self.text(exchange.target)

    def _headers(self, raw: Headers) -> Headers:
        """The fields, clean. Twice where the first look taught something: an echo may stand before the secret."""
        clean: Headers | None = None
        for _ in range(2):
            if self._generation != self._scrub.seen.generation or len(self._heads) >= _CACHED:
                self._forget()
            clean = self._heads.get(raw)
            if clean is None:
                clean = tuple((name, payload.header(self._scrub, name, value)) for name, value in raw)
                self._heads[raw] = clean
            if self._generation == self._scrub.seen.generation:
                break
        return raw if clean is None or clean == raw else clean

    def _learn_card_text(self, text: bytes) -> None:
        try:
            card = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        for part in (card, card.get("result") if isinstance(card, dict) else None):
            if isinstance(part, dict):
                self.learn_card(part)


def _union(old: tuple[str, ...], new: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))


def _dropped(frame: Frame) -> Frame:
    """Fail closed: better a hole in the recording than a secret."""
    return msgspec.structs.replace(
        frame, payload=b"", sha256=b"", framing="", rpc_id="", note=_FAILED, redacted=_union(frame.redacted, ["$"])
    )
