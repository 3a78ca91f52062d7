"""Summaries of protobuf messages."""

from __future__ import annotations

import gc

from a2a_proto import from_dict
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.proto_summary import bare_id
from a2a_proxy.protocol.schema import decoder_for


def test_readers_outlive_the_classes_of_nested_messages() -> None:
    """Nested classes that nobody holds are forgotten by protobuf; a reader made after that reads
    all the same."""
    data = from_dict(
        "1.0", "StreamResponse", {"task": {"id": "t", "contextId": "c"}}
    ).SerializeToString()
    gc.collect()
    decoder_for.cache_clear()
    made = decoder_for("lf.a2a.v1.StreamResponse")
    assert made.summarise(made.parse(data))[:3] == (EventKind.TASK, "t", "c")


def test_the_task_id_is_read_from_a_resource_name() -> None:
    assert (
        bare_id("tasks/t1")
        == bare_id("tasks/t1/pushNotificationConfigs/c1")
        == bare_id("t1")
        == "t1"
    )
