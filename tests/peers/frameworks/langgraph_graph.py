"""The graph that `langgraph_agent.py` serves: one node, no model."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages


class State(TypedDict):
    """What the A2A interface wants of a graph: messages."""

    messages: Annotated[list[Any], add_messages]


def answer(state: State) -> dict[str, list[AIMessage]]:
    """Answer with the text; `fail` raises."""
    text = str(state["messages"][-1].text)
    if text == "fail":
        raise RuntimeError("the agent's code broke")
    return {"messages": [AIMessage(content=f"you said {text}")]}


builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
