"""The redactor: values in, the same values without credentials out.

`Redactor` guarantees that a value without secrets is returned as the same object, that `size` stays
the true size on the wire regardless of the length of the redacted payload, and that `redacted`
lists the replaced places. If redaction itself fails, the payload is dropped and `note` reports it.
A secret from a known place is replaced wherever it occurs afterwards.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, Protocol, TypeVar

import msgspec

from a2a_proxy.model.card_signature import CardSignature
from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.fields import redacted_names
from a2a_proxy.model.values import (
    ArtifactState,
    Connection,
    ConnectionTls,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Task,
)
from a2a_proxy.model.wire import CertificateFacts, ClientProcess, Headers, TlsFacts
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, find_only_chunk, texts_of_frame
from a2a_proxy.redaction import payload
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.payload import fields_clean
from a2a_proxy.redaction.policy import DEFAULT, RedactionPolicy
from a2a_proxy.redaction.policy_scrubber import PolicyScrubber
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_names import card_names, fold_name
from a2a_proxy.redaction.split_secrets import OpenText, Place, SplitSecrets

_CARD, _ARTIFACT, _TASK, _EVENT = (
    EventKind.CARD,
    EventKind.ARTIFACT,
    EventKind.TASK,
    FrameKind.EVENT,
)
_LINES: Final = frozenset({FrameKind.LOG, FrameKind.OTHER, FrameKind.UNDECODABLE})
"""Kinds of frames that may hold lines of a longer text."""
_CACHED: Final = 2048
"""Header lists, and heads of exchanges, that are kept."""
_CACHED_TEXTS: Final = 1 << 15
"""Texts without secrets that are kept: more than the recorder decodes before it writes the
exchanges, which repeat the ids of their frames."""
_PROCESS_TEXTS: Final = ("name",)
_TLS_TEXTS: Final = ("server_name",)
_MANY: Final = 64
_ELLIPSIS: Final = "…".encode()
_REMARK: Final = re.compile(rb"(?:\(|, )([^,]{1,80}?): ")
"""The beginning of a remark in the line of an error, with the place that it names."""
_SIDES: Final = (
    ("request_headers", "header"),
    ("response_headers", "response-header"),
    ("trailers", "trailer"),
)
_FAILED: Final = "redaction failed, dropped"
_UNSIEVED: Final = -1
"""Result of `Redactor.sieve_frames` that matches no state of the known secrets."""

Strings = tuple[bytes, ...]
"""Strings of a payload, decoded."""

_TaughtHeads = tuple[Headers, Headers, Headers, Headers, int]
"""Header fields of request and response, the same without secrets, and the number of changes of the
known secrets."""

_V = TypeVar(
    "_V", Frame, Exchange, Connection, ClientProcess, TlsFacts, Finding, Task, ArtifactState
)
_Artifacts = tuple[ArtifactState, ...]


class Heads(Protocol):
    """The parts of a frame's exchange, possibly still open, that redaction reads."""

    @property
    def id(self) -> int:
        """Number of the exchange within the session."""

    @property
    def target(self) -> str:
        """Request target."""

    @property
    def request_headers(self) -> Headers:
        """Header fields as sent by the client."""

    @property
    def response_headers(self) -> Headers:
        """Header fields as sent by the agent; empty before its response."""


class RedactorState(msgspec.Struct):
    """Known names and secrets, and ends of texts that are not redacted: only for the 0600 snapshot,
    never for a recording."""

    names: set[str]
    secrets: list[bytes]
    texts: dict[Place, OpenText]


class Redactor:
    """Redacts the values of one session. Not thread-safe.

    `key` is the key of the labels. It is stored in the state directory, never in a recording. With
    the policy `none` all values are returned unchanged.
    """

    def __init__(self, key: bytes, policy: RedactionPolicy = DEFAULT) -> None:
        self._enabled = not policy.none
        self._scrub: Scrubber = (
            Scrubber(key) if policy.plain or policy.none else PolicyScrubber(key, policy)
        )
        self._suspicious = partial(self._scrub.may_hold_secret, is_payload=True)
        self._taught: dict[int, _TaughtHeads] = {}
        """The last heads of each exchange that have been searched for secrets, and the same without
        them."""
        self._heads: dict[Headers, Headers] = {}
        self._clean_texts: set[str] = {""}
        self._change_count = 0
        self._split = SplitSecrets(self._scrub)
        self._continues_texts = False
        """Whether the chunks since the last `sieve_frames` have continued the texts as it expected,
        so that its result holds for them."""
        self._artifacts_of: dict[tuple[str, str], tuple[int, _Artifacts, _Artifacts]] = {}
        """For tasks with many artifacts: the number of changes of the known secrets, the last
        artifacts seen, and the same without secrets."""

    def sieve_frames(
        self,
        frames: Sequence[object],
        strings: Iterable[Strings | None] = repeat(None),
        chunks: Iterable[ArtifactChunk | None] = repeat(None),
    ) -> int:
        """Test several frames at once for secrets, at half the cost of single tests. Other objects
        are left out. Chunks of artifacts are tested with the text before them.

        `strings` has for each frame the strings of its payload apart from `task_id`, `context_id`
        and `rpc_id`, or None if they are not known, so that the whole payload is tested; `chunks`
        has the artifact chunks. The result is an argument for `redact_frame`, which then skips its
        own test unless a secret was learned in the meantime.
        """
        self._continues_texts = False
        if not self._enabled:
            return _UNSIEVED
        payloads: list[bytes] = []
        texts: dict[Place, list[bytes]] = {}
        trusts = not self._scrub.names  # a card's names may be those of the strings
        for frame, known, chunk in zip(frames, strings, chunks, strict=False):
            if type(frame) is not Frame:
                continue
            if frame.event is _ARTIFACT:
                if chunk is None or not chunk.text:
                    return _UNSIEVED
                place = _place_of(frame)
                if place not in texts:
                    texts[place] = [self._split.tail_before(place, (frame.exchange, frame.seq))]
                texts[place].append(chunk.text)
                if self._split.is_clean_around(chunk):
                    continue
            if known is not None and trusts:
                payloads += known
            else:
                payloads.append(frame.payload)
        # First, because what the test finds of a part of a secret depends on its place.
        payloads[:0] = [b"".join(pieces) for pieces in texts.values()]
        if not payloads:
            return _UNSIEVED
        self._continues_texts = True
        try:
            # No pattern matches across the end of a line, and none is anchored at the start of the
            # data.
            suspicious = self._suspicious(
                payloads[0] if len(payloads) == 1 else b"\n".join(payloads)
            )
        except Exception:
            return _UNSIEVED
        return _UNSIEVED if suspicious else self._scrub.seen.change_count

    def redact_frame(
        self,
        frame: Frame,
        exchange: Heads | None,
        sieved: int = _UNSIEVED,
        strings: Strings | None = None,
        chunk: ArtifactChunk | None = None,
    ) -> Frame:
        """Return the frame without secrets, the same object if it has none.

        `exchange` is its unredacted exchange, `sieved` and `strings` are the result and an argument
        of `sieve_frames`; `chunk` is the artifact chunk in it, if it was read.
        """
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
                    self._learn_heads(exchange)
            is_read = strings is not None  # its JSON is complete
            if frame.kind in _LINES:
                frame = self._redact_line(frame)
            elif frame.event is _ARTIFACT:
                if self._accept_chunk(frame, chunk, sieved):
                    sieved, is_read = self._scrub.seen.change_count, frame.schema == "json"
                else:
                    frame, sieved = self._redact_chunk(frame), _UNSIEVED
            elif frame.event is _TASK and frame.kind is _EVENT:
                frame = self._redact_chunk(frame)
            data = frame.payload
            if self._scrub.names:
                strings = None
            change_count = self._scrub.seen.change_count
            if self._change_count != change_count:
                self._clear_caches()
            clean = self._clean_texts
            if (
                data
                and not frame.truncated
                and (is_read or fields_clean(frame.schema, data))
                and (
                    (frame.task_id in clean and frame.context_id in clean and frame.rpc_id in clean)
                    or self._has_clean_ids(frame)  # an id may come from the path
                )
                and (sieved == change_count or not self._may_hold_secret(data, strings))
                and (frame.framing in clean or self._redact_framing(frame.framing) is frame.framing)
                and (frame.note in clean or self.redact_text(frame.note) is frame.note)
                and frame.event is not _CARD
            ):
                return frame
            return self._redact_whole_frame(frame)
        except Exception:
            return _drop_payload(frame)

    def _redact_line(self, frame: Frame) -> Frame:
        """Redact a private key whose lines are the payloads of several frames."""
        name = "log" if frame.kind is FrameKind.LOG else ""
        place = (frame.connection, frame.exchange, frame.direction, name)
        (clean,) = self._split.redact_pieces(
            place, (frame.exchange, frame.seq), [frame.payload], is_line=True
        )
        if clean is frame.payload:
            return frame
        payload = (
            msgspec.json.encode(clean.decode("utf-8", "replace"))
            if frame.schema == "json"
            else clean
        )
        return _replace_payload(frame, payload, ["$"])

    def _accept_chunk(self, frame: Frame, chunk: ArtifactChunk | None, sieved: int) -> bool:
        """Whether the next chunk of an artifact has no secret, nor has the text before it with
        it."""
        chunk = chunk or find_only_chunk(frame)
        if chunk is None or not chunk.text:
            return False
        place = _place_of(frame)
        is_sieved = self._continues_texts and sieved == self._scrub.seen.change_count
        is_clean = self._split.accept_clean_piece(
            place, (frame.exchange, frame.seq), chunk, b"" if is_sieved else frame.payload
        )
        if is_clean and frame.last_chunk:
            self._split.forget_text(place)
        return is_clean

    def _redact_chunk(self, frame: Frame) -> Frame:
        """Redact a secret whose characters are in several events of a stream, or in several
        deliveries.

        A snapshot may end in the middle of a secret too, but the next event may continue any of its
        artifacts.
        """
        self._continues_texts = False
        place = _place_of(frame)
        texts = texts_of_frame(frame)
        new = self._split.redact_pieces(place, (frame.exchange, frame.seq), texts, is_line=False)
        clean = {text: other for text, other in zip(texts, new, strict=True) if other is not text}
        if frame.last_chunk or frame.event is _TASK:
            self._split.forget_text(place)
        return (
            _replace_payload(frame, *payload.replace_texts(frame.schema, frame.payload, clean))
            if clean
            else frame
        )

    def _may_hold_secret(self, data: bytes, strings: Strings | None) -> bool:
        """Whether a walk through the payload could replace a string. It tests each string by
        itself."""
        if strings is None:
            return self._suspicious(data)
        return any(self._scrub.redact_string(each, None, cut=False) is not None for each in strings)

    def _has_clean_ids(self, frame: Frame) -> bool:
        return all(
            self.redact_text(each) is each
            for each in (frame.task_id, frame.context_id, frame.rpc_id)
        )

    def _redact_whole_frame(self, frame: Frame) -> Frame:
        if frame.event is _CARD and frame.schema == "json":
            self._learn_card_text(frame.payload)
        new, paths = self._redact_payload(frame)
        changes: dict[str, Any] = self._texts_of(frame, redacted_names(Frame))
        if (framing := self._redact_framing(frame.framing)) is not frame.framing:
            changes["framing"] = framing
        paths += [name for name in changes if name not in paths]
        if new != frame.payload:
            frame = _replace_payload(frame, new, [])
        elif not changes:
            return frame
        return msgspec.structs.replace(
            frame, **changes, redacted=_merge_paths(frame.redacted, paths)
        )

    def _redact_payload(self, frame: Frame) -> tuple[bytes, list[str]]:
        """Return the payload without secrets, and their paths. Redacts twice if the first pass
        learned a secret."""
        if not frame.payload:
            return frame.payload, []
        before = self._scrub.seen.change_count
        clean = payload.redact_payload(
            self._scrub, frame.schema, frame.payload, cut=frame.truncated
        )
        if self._scrub.seen.change_count == before:
            return clean
        return payload.redact_payload(self._scrub, frame.schema, frame.payload, cut=frame.truncated)

    def redact_exchange(self, exchange: Exchange) -> Exchange:
        """Return the exchange without secrets in headers, trailers, target, authority and error
        text."""
        if not self._enabled:
            return exchange
        try:
            request, response = self._redact_heads(exchange)
            changes: dict[str, Any] = self._texts_of(exchange, redacted_names(Exchange))
            line = changes.get("error", exchange.error)
            if line and (safe := self._redact_error(line)) != line:
                changes["error"] = safe
            paths = list(changes)
            trailers = self._redact_headers(exchange.trailers) if exchange.trailers else ()
            for (side, word), clean in zip(_SIDES, (request, response, trailers), strict=True):
                raw: Headers = getattr(exchange, side)
                if clean is not raw:
                    changes[side] = clean
                    paths += [
                        f"{word}:{name.decode('latin-1').lower()}"
                        for (name, old), (_, new) in zip(raw, clean, strict=True)
                        if old != new
                    ]
            signatures = tuple(map(self._redact_signature, exchange.card_signatures))
            if signatures != exchange.card_signatures:
                changes["card_signatures"] = signatures
                paths.append("card_signatures")
            if not changes:
                return exchange
            return msgspec.structs.replace(
                exchange, **changes, redacted=_merge_paths(exchange.redacted, paths)
            )
        except Exception:
            return msgspec.structs.replace(
                exchange,
                request_headers=(),
                response_headers=(),
                trailers=(),
                target="",
                authority="",
                error=_FAILED,
                card_signatures=(),
            )

    def _redact_error(self, line: str) -> str:
        """Redact the line of an error: its texts may be cut, and a remark in brackets may have the
        name of a member that is redacted in the payload."""
        data = line.encode("utf-8", "surrogatepass")
        for found in _REMARK.finditer(data):
            name = found[1].rpartition(b".")[2].decode("utf-8", "replace")
            rest = data[found.end() :].removesuffix(b")")
            if self._scrub.names_secret(name) and not is_label(rest):
                data = data[: found.end()] + self._scrub.make_label(rest) + b")"
                break
        *cut, end = data.split(_ELLIPSIS)
        pieces = [self._scrub.redact_text(piece, cut=True) for piece in cut]
        return _ELLIPSIS.join([*pieces, end]).decode("utf-8", "surrogatepass")

    def _redact_signature(self, signature: CardSignature) -> CardSignature:
        """Return the signature without secrets in the texts that the agent chose."""
        text = self.redact_text
        return msgspec.structs.replace(
            signature,
            kid=text(signature.kid),
            alg=text(signature.alg),
            jku=text(signature.jku),
            uncovered=tuple(map(text, signature.uncovered)),
            reason=text(signature.reason),
        )

    def redact_connection(self, connection: Connection) -> Connection:
        """Return the connection without user info in its addresses and without secrets in the
        reason for its end."""
        clean = self._redact_members(connection, redacted_names(Connection))
        if connection.client_process is None and connection.tls is None:
            return clean
        return msgspec.structs.replace(
            clean,
            client_process=self.redact_process(connection.client_process),
            tls=self._redact_tls(connection.tls),
        )

    def redact_process(self, process: ClientProcess | None) -> ClientProcess | None:
        """Return the process without secrets in its name."""
        return None if process is None else self._redact_members(process, _PROCESS_TEXTS)

    def _redact_tls(self, tls: ConnectionTls | None) -> ConnectionTls | None:
        """Return the handshakes without secrets in the names that peers chose."""
        if tls is None:
            return None
        return ConnectionTls(
            self._redact_handshake(tls.client), self._redact_handshake(tls.upstream)
        )

    def _redact_handshake(self, facts: TlsFacts | None) -> TlsFacts | None:
        if facts is None:
            return None
        server, client = (
            self._redact_certificate(facts.server),
            self._redact_certificate(facts.client),
        )
        clean = self._redact_members(facts, _TLS_TEXTS)
        return msgspec.structs.replace(clean, server=server, client=client)

    def _redact_certificate(self, facts: CertificateFacts | None) -> CertificateFacts | None:
        if facts is None:
            return None
        return msgspec.structs.replace(facts, names=tuple(map(self.redact_text, facts.names)))

    def redact_task(self, task: Task) -> Task:
        """Return the task without secrets; an id that contains a secret gets the same label as in
        frames."""
        if not self._enabled:
            return task
        clean, artifacts = self._redact_members(task, redacted_names(Task)), task.artifacts
        if artifacts:
            found = self._redact_artifacts((task.agent, task.task_id), artifacts)
            if found != artifacts:
                return msgspec.structs.replace(clean, artifacts=found)
        return clean

    def _redact_artifacts(self, key: tuple[str, str], artifacts: _Artifacts) -> _Artifacts:
        """Redact artifacts. If there are many, objects that the previous call returned are not
        tested again."""
        change_count = self._scrub.seen.change_count
        known = self._artifacts_of.pop(key, None)
        before, clean = known[1:] if known is not None and known[0] == change_count else ((), ())
        found = [
            was if one is each else self._redact_artifact(each)
            for one, was, each in zip(before, clean, artifacts, strict=False)
        ]
        made = (*found, *map(self._redact_artifact, artifacts[len(before) :]))
        if len(artifacts) > _MANY:
            self._artifacts_of[key] = (change_count, artifacts, made)
            if len(self._artifacts_of) > _MANY:
                del self._artifacts_of[next(iter(self._artifacts_of))]
        return made

    def _redact_artifact(self, artifact: ArtifactState) -> ArtifactState:
        return self._redact_members(artifact, redacted_names(ArtifactState))

    def redact_finding(self, finding: Finding) -> Finding:
        """Return the finding without secrets in summary and evidence; evidence with a secret's name
        is a secret."""
        if not self._enabled:
            return finding
        finding = self._redact_members(finding, redacted_names(Finding))
        try:
            evidence = {
                self.redact_text(name): self._redact_named_value(name, value)
                for name, value in finding.evidence.items()
            }
        except Exception:
            evidence = {"note": _FAILED}
        return (
            finding
            if evidence == finding.evidence
            else msgspec.structs.replace(finding, evidence=evidence)
        )

    def redact_text(self, text: str) -> str:
        """Return a text without secrets: an error, a command line, a console line. The same object
        if it has none."""
        if not self._enabled:
            return text
        if (
            self._change_count != self._scrub.seen.change_count
            or len(self._clean_texts) >= _CACHED_TEXTS
        ):
            self._clear_caches()
        if text in self._clean_texts:
            return text
        try:
            return self._scrub_text(text)
        except Exception:
            return _FAILED

    def redact_command(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a command line without secrets. A secret may be the word after its
        flag."""
        clean: list[str] = []
        for before, word in zip(("", *words), words, strict=False):
            flag = before[2:] if before.startswith("--") and "=" not in before else ""
            clean.append(
                self._redact_named_value(flag, word)
                if self._enabled and flag
                else self.redact_text(word)
            )
        # Some programs have flags of their own: `mysql -pX`.
        line = self.redact_text(" ".join(word.replace(" ", "\0") for word in clean)).split(" ")
        return (
            tuple(word.replace("\0", " ") for word in line)
            if len(line) == len(clean)
            else tuple(clean)
        )

    def learn_card(self, card: dict[str, Any]) -> None:
        """Learn the names that an agent card of any dialect declares for its API keys. Their values
        are secrets."""
        new = card_names(card) - self._scrub.names
        if new:
            self._scrub.learn_names(new)

    def make_label(self, secret: bytes) -> bytes:
        """Return the label of a secret, as bytes."""
        return self._scrub.make_label(secret)

    @property
    def change_count(self) -> int:
        """Number of changes of the known names and secrets: results from before the last one may
        contain a secret."""
        return self._scrub.seen.change_count

    def save(self) -> RedactorState:
        """Return the state for `restore`."""
        return RedactorState(self._scrub.names, self._scrub.seen.secrets, self._split.texts)

    def restore(self, state: RedactorState) -> None:
        """Restore the state that was saved."""
        self._scrub.learn_names(state.names)
        for secret in state.secrets:
            self._scrub.seen.add(secret)
        self._split.texts = state.texts

    def _redact_members(self, value: _V, names: tuple[str, ...]) -> _V:
        if not self._enabled:
            return value
        changes = self._texts_of(value, names)
        return msgspec.structs.replace(value, **changes) if changes else value

    def _texts_of(self, value: object, names: tuple[str, ...]) -> dict[str, Any]:
        if self._change_count != self._scrub.seen.change_count:
            self._clear_caches()
        texts: list[str] = [getattr(value, name) for name in names]
        if self._clean_texts.issuperset(texts):
            return {}
        changes = {}
        for name, old in zip(names, texts, strict=True):
            if old not in self._clean_texts and (new := self.redact_text(old)) is not old:
                changes[name] = new
        return changes

    def _redact_framing(self, text: str) -> str:
        """Redact the text around a payload, a header block (stdio) by field. Returns the same
        object if it is clean."""
        if "\n\0" not in text or not self._enabled:
            return self.redact_text(text)
        lines = [self._redact_field(line) for line in text.split("\n")]
        clean = self.redact_text("\n".join(lines))
        if clean != text:
            return clean
        self._clean_texts.add(text)
        return text

    def _redact_field(self, line: str) -> str:
        name, colon, value = line.partition(":")
        raw = value.strip()
        if not colon or not raw:
            return line
        data = raw.encode("latin-1", "replace")
        clean = payload.redact_header(self._scrub, name.strip().encode("latin-1", "replace"), data)
        return line if clean == data else name + colon + value.replace(raw, clean.decode("latin-1"))

    def _scrub_text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self._scrub.redact_column(data) or self._scrub.redact_text(data)
        if clean == data:
            self._clean_texts.add(text)
            return text
        return clean.decode("utf-8", "surrogatepass")

    def _clear_caches(self) -> None:
        """Clear the caches, because clean texts may contain a secret that became known since."""
        self._clean_texts = {""}
        self._heads = {}
        self._change_count = self._scrub.seen.change_count

    def _redact_named_value(self, name: str, value: str) -> str:
        if self._scrub.names_secret(name):
            new = self._scrub.redact_named_value(
                fold_name(name), value.encode("utf-8", "surrogatepass")
            )
            return value if new is None else new.decode("utf-8", "replace")
        return self.redact_text(value)

    def _redact_heads(self, exchange: Heads) -> tuple[Headers, Headers]:
        """Return the header fields of request and response without secrets."""
        request, response = exchange.request_headers, exchange.response_headers
        taught = self._taught.get(exchange.id)
        if taught is None or taught[0] is not request or taught[1] is not response:
            taught = self._learn_heads(exchange)
        if taught[4] != self._scrub.seen.change_count:
            taught = self._learn_heads(exchange)
        return taught[2], taught[3]

    def _learn_heads(self, exchange: Heads) -> _TaughtHeads:
        """Learn the secrets of the heads before the body, which may repeat them."""
        for oldest in keys_to_evict(self._taught, _CACHED):
            del self._taught[oldest]
        request, response = exchange.request_headers, exchange.response_headers
        clean = self._redact_headers(request), self._redact_headers(response)
        self.redact_text(exchange.target)
        taught = self._taught[exchange.id] = (
            request,
            response,
            *clean,
            self._scrub.seen.change_count,
        )
        return taught

    def _redact_headers(self, raw: Headers) -> Headers:
        """Return the fields without secrets. Redacts twice if it learned one: an echo may precede
        its secret."""
        clean: Headers | None = None
        for _ in range(2):
            if self._change_count != self._scrub.seen.change_count or len(self._heads) >= _CACHED:
                self._clear_caches()
            clean = self._heads.get(raw)
            if clean is None:
                clean = tuple(
                    (name, payload.redact_header(self._scrub, name, value)) for name, value in raw
                )
                self._heads[raw] = clean
            if self._change_count == self._scrub.seen.change_count:
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


def _place_of(frame: Frame) -> Place:
    """Return the text that a chunk continues. Deliveries are calls of their own."""
    if frame.kind is _EVENT:
        return frame.connection, frame.exchange, frame.direction, frame.artifact_id
    return 0, 0, frame.direction, f"{frame.task_id} {frame.artifact_id}"


def _merge_paths(old: tuple[str, ...], new: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))


def _replace_payload(frame: Frame, new: bytes, paths: list[str]) -> Frame:
    """Return the frame with a redacted payload. A digest of the whole payload would allow guesses
    to be verified."""
    digest = b"" if frame.truncated else frame.sha256
    return msgspec.structs.replace(
        frame, payload=new, sha256=digest, redacted=_merge_paths(frame.redacted, paths)
    )


def _drop_payload(frame: Frame) -> Frame:
    """Return the frame without payload: a gap in the recording is better than a secret."""
    return msgspec.structs.replace(
        frame,
        payload=b"",
        sha256=b"",
        framing="",
        rpc_id="",
        note=_FAILED,
        redacted=_merge_paths(frame.redacted, ["$"]),
    )
