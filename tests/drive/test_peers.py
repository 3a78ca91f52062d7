"""Real agents driven with recordings of their kind: nothing differs except what the SDKs themselves
change."""

from __future__ import annotations

from pathlib import Path

import pytest

from peers.live.agent import LiveAgent
from peers.live.payloads import card
from peers.live.proposals import PROPOSALS
from peers.live.stories import STORIES
from peers.live.story import parts
from support_drive import JUDGED_LATER, driven
from support_peers import agent, require_peers
from support_thin import thin

_SDK = [
    ("sdk1", "sdk-1.x-rest", JUDGED_LATER),
    ("sdk1", "sdk-1.x-grpc", JUDGED_LATER),
    ("sdk1", "sdk-1.x-jsonrpc", JUDGED_LATER),
    ("sdk1", "concurrent-grpc", ()),
    ("sdk1", "js-three-bindings", ("--strict", *JUDGED_LATER)),
    ("sdk1", "js-three-bindings", ("--binding", "grpc", *JUDGED_LATER)),
    ("sdk1", "js-three-bindings", ("--binding", "rest", *JUDGED_LATER)),
    ("sdk03", "sdk-0.3-grpc", JUDGED_LATER),
    ("sdk03", "sdk-0.3-rest", JUDGED_LATER),
    ("sdk03", "sdk-0.3-jsonrpc", JUDGED_LATER),
    ("generations", "generations", ()),
    ("0_1", "dialect-0.1", ()),
    ("0_2", "dialect-0.2", JUDGED_LATER),
]


@pytest.mark.peers
@pytest.mark.parametrize("case", thin(_SDK, len(_SDK)), ids=str)
async def test_an_agent_of_an_sdk_answers_as_recorded(
    case: tuple[str, str, tuple[str, ...]], tmp_path: Path
) -> None:
    """All scenarios of the sample: follow-ups of tasks made now, a second subscriber, cancels,
    refusals, cuts."""
    kind, sample, words = case
    require_peers(kind)
    with agent(kind) as far:
        grpc = ("--upstream-grpc", far.grpc_target) if far.grpc else ()
        found = await driven(sample, tmp_path, "--upstream", f"127.0.0.1:{far.http}", *grpc, *words)
    assert [each for each in found if each["kind"] in ("call", "task", "remark")] == []
    assert found[0]["same"]


_LIVE = {
    "live-bidi": {
        "approval",
        "approval-closed",
        "configured",
        "lost",
        "over",
        "refused",
        "shared",
        "watched",
    }
    | {"answered", "unknown", "idle", "cancelled", "packed"},
    "live-1975": {"talk"},
    "live-2153": {"uplink"},
}


@pytest.mark.parametrize("sample", thin(_LIVE, 3))
async def test_live_streams_are_driven_in_both_directions(sample: str, tmp_path: Path) -> None:
    """Each answer after its question, half-closes and a cancel where they were, two streams of one
    task."""
    stories = [story for story in (*STORIES, *PROPOSALS) if story.name in _LIVE[sample]]
    far = LiveAgent(parts(stories), card(streaming=True, bidiStreaming=True))
    try:
        found = await driven(sample, tmp_path, "--upstream", await far.start())
    finally:
        await far.stop()
    assert [each for each in found if each["kind"] in ("call", "task", "remark")] == []
    assert found[0]["same"]
