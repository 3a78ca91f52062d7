"""The shape by which a result of 0.3 is judged: its `kind`, otherwise its members."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.schema import check


@pytest.mark.parametrize(
    ("value", "streaming", "shape"),
    [
        ({"kind": "task"}, True, "Task"),
        ({"kind": "message", "artifact": {}}, True, "Message"),
        ({"kind": "status-update"}, False, "StatusUpdate"),
        ({"kind": "artifact-update", "final": True}, False, "ArtifactUpdate"),
        ({"kind": "other", "artifact": {}}, False, "ArtifactUpdate"),
        ({"kind": 1, "parts": []}, False, "Message"),
        ({"artifact": {}, "final": True}, True, "ArtifactUpdate"),
        ({"final": False}, False, "StatusUpdate"),
        ({"status": {}}, True, "StatusUpdate"),
        ({"status": {}}, False, "Task"),
        ({"status": {}, "id": "t1"}, True, "Task"),
        ({"messageId": "m1"}, True, "Message"),
        ({"parts": []}, False, "Message"),
        ({}, True, "Task"),
        ([], True, "Task"),
        (None, False, "Task"),
    ],
)
def test_a_result_without_a_known_kind_is_judged_by_its_members(
    value: Any, streaming: bool, shape: str
) -> None:
    assert check._event_shape_name(value, streaming) == shape
