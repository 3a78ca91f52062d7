"""A chain of three real agents, recorded, and sent to a backend in this process: names, attributes,
events, links, parents and times; what real backends make of the same is
`tests/e2e/test_backends.py`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.telemetry.offline import BackendSink, RecordingExport
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.target import otlp_target
from support_otlp import Received, grpc_backend, http_backend
from support_spans import (
    AGENTS_SPANS,
    TRACED,
    UNTRACED,
    Seen,
    check_apart,
    check_as_recorded,
    check_links,
    check_one_tree,
    received_spans,
    recorded,
)


def sent(path: Path, open_backend: Callable[[], AbstractContextManager[Received]]) -> list[Seen]:
    with open_backend() as received, open_recording_or_cassette(path) as recording:
        backend = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
        RecordingExport(recording, BackendSink(backend)).run(None)
        backend.close()
    found = received_spans(received)
    check_as_recorded(found, recorded([path]), 1)
    return found


def test_spans_of_propagating_agents_and_the_proxy_form_one_tree() -> None:
    theirs = msgspec.json.decode(AGENTS_SPANS.read_bytes(), type=list[Seen])
    found = sent(TRACED, grpc_backend)
    check_one_tree([*theirs, *found])
    check_links(found)


def test_calls_of_agents_without_propagation_are_joined_by_links() -> None:
    found = sent(UNTRACED, http_backend)
    check_apart(found)
    check_links(found)


def test_a_misplaced_span_is_detected() -> None:
    theirs = msgspec.json.decode(AGENTS_SPANS.read_bytes(), type=list[Seen])
    found = sent(TRACED, http_backend)
    moved = msgspec.structs.replace(found[-1], parent=found[0].span)
    with pytest.raises(AssertionError):
        check_one_tree([*theirs, *found[:-1], moved])
