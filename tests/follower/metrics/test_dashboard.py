"""The Grafana dashboard of the manual: its queries name only metrics and labels that `/metrics`
prints."""

from __future__ import annotations

import json
import re
from importlib import resources
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from a2a_proxy.follower.metrics.session_reader import MetricsSession
from a2a_proxy.recording.cassette.file import open_recording_or_cassette

BOARD: dict[str, Any] = json.loads(
    resources.files("a2a_proxy").joinpath("manual/grafana.json").read_text()
)
PANELS: list[dict[str, Any]] = BOARD["panels"]
QUERIES = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in PANELS
    for target in panel["targets"]
]
RECORDINGS = Path(__file__).parents[3] / "recordings"
SCRAPE_LABELS = {"instance", "job"}
"""Labels that Prometheus itself adds."""


@pytest.fixture(scope="module")
def printed() -> dict[str, set[str]]:
    """Name -> labels of each sample on the page of a recording with streams, tasks and findings,
    and an open call."""
    with open_recording_or_cassette(RECORDINGS / "lossy.a2a.jsonl") as recording:
        session = MetricsSession(recording, recording.read_sessions()[0])
        while session.read_new_rows():
            pass
        session.numbers.record_snapshot({("GetTask", "rest", "agent:1"): 1}, {}, 0, 0)
        page = session.numbers.format_exposition().decode()
    return {
        each.name: set(each.labels)
        for family in text_string_to_metric_families(page)
        for each in family.samples
    }


def named_labels(query: str) -> set[str]:
    """Labels in matchers and groupings."""
    groups = (each.split(",") for each in re.findall(r"by \(([^)]*)\)", query))
    return set(re.findall(r'(\w+)(?:=~|!=|!~|=)"', query)) | {
        label.strip() for group in groups for label in group
    }


@pytest.mark.parametrize(("title", "query", "legend"), QUERIES)
def test_queries_name_printed_metrics_and_labels(
    printed: dict[str, set[str]], title: str, query: str, legend: str
) -> None:
    names = re.findall(r"\ba2a_proxy_\w+", query)
    assert names, title
    known = SCRAPE_LABELS.union(*(printed[name] for name in names))
    assert named_labels(query) <= known
    assert set(re.findall(r"{{(\w+)}}", legend)) <= named_labels(query)
    assert query.count("(") == query.count(")")


def test_variables_name_printed_labels(printed: dict[str, set[str]]) -> None:
    queried = [
        each["definition"] for each in BOARD["templating"]["list"] if each["type"] == "query"
    ]
    for definition in queried:
        found = re.fullmatch(r"label_values\((\w+), (\w+)\)", definition)
        assert found is not None
        assert found[2] in printed[found[1]]
    used = {
        name
        for _, query, _ in QUERIES
        for name in re.findall(r"\$(\w+)", query)
        if not name.startswith("__")
    }
    assert used == {each["name"] for each in BOARD["templating"]["list"]} - {"datasource"}


def test_every_metric_is_on_the_dashboard(printed: dict[str, set[str]]) -> None:
    shown = {name for _, query, _ in QUERIES for name in re.findall(r"\ba2a_proxy_\w+", query)}
    served = {
        name for name in printed if not name.endswith("_created")
    }  # the process serves no times of creation
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in served} == {
        re.sub(r"_(bucket|count)$", "", name) for name in shown
    }


def test_panels_do_not_overlap() -> None:
    assert [each["id"] for each in PANELS] == list(range(1, len(PANELS) + 1))
    places = [each["gridPos"] for each in PANELS]
    for one, other in combinations(places, 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart_x or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(each["x"] + each["w"] <= 24 for each in places)
    assert all((a["y"], a["x"]) < (b["y"], b["x"]) for a, b in pairwise(places))
    assert {
        json.dumps(target["datasource"]) for each in PANELS for target in [each, *each["targets"]]
    } == {'{"type": "prometheus", "uid": "${datasource}"}'}
