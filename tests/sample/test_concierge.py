"""Tests of the concierge: they replay cassettes, and need no agent."""

from __future__ import annotations

import pytest
from concierge import Concierge

from a2a_proxy import Recording
from a2a_proxy.testing import Agent


async def test_books_a_table(a2a_agent: Agent) -> None:
    assert await Concierge(a2a_agent.url).book_table(people=4) == "Table booked, 19:30, for 4"


async def test_plans_a_day(a2a_agent: Agent, a2a_recording: Recording) -> None:
    plan = [line async for line in Concierge(a2a_agent.url).plan_day("Lisbon")]
    assert plan[0].startswith("Morning:")
    [task] = a2a_recording.tasks()
    assert task.state == "completed"


class TestCities:
    @pytest.mark.parametrize("city", ["Porto", "São Brás"])
    @pytest.mark.a2a_cassette("cassettes/days.a2a.jsonl", match="by-operation")
    async def test_every_city_has_an_evening(self, a2a_agent: Agent, city: str) -> None:
        """One cassette for all cities: whatever is asked, the recorded plan comes."""
        plan = [line async for line in Concierge(a2a_agent.url).plan_day(city)]
        assert plan[-1].startswith("Evening:")


def test_the_agent_shows_its_card(a2a_agent: Agent) -> None:
    """Nothing asynchronous is needed."""
    assert a2a_agent.card["name"] == "Demo travel agent"
    assert a2a_agent.card["supportedInterfaces"][0]["url"] == f"{a2a_agent.url}/rpc"
