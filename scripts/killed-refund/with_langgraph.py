"""The refund as a LangGraph program: a graph of a model and its tools, with the SQLite saver.

Usage: with_langgraph.py CHECKPOINTS begin|resume. The model is a stub, so that nothing needs a key.
"""
import json
import os
import sys
import urllib.request

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def refund(order: str, cents: int) -> str:
    """Pays money back for an order."""
    body = json.dumps({"order": order, "cents": cents}).encode()
    request = urllib.request.Request(f"{os.environ['SHOP_URL']}/refunds", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


class Stub(BaseChatModel):
    """Asks for the refund, and says that it is on its way once the refund was made."""

    @property
    def _llm_type(self):
        return "stub"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage("Your 39.90 are on their way.")
        else:
            call = {"name": "refund", "args": {"order": "4711", "cents": 3990}, "id": "call-1", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


def desk(state):
    return {"messages": [Stub().invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("desk", desk)
graph.add_node("tools", ToolNode([refund]))
graph.add_edge(START, "desk")
graph.add_conditional_edges("desk", tools_condition)
graph.add_edge("tools", "desk")

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "complaint"}}
    begin = {"messages": [HumanMessage("My kettle arrived broken.")]}
    # `None` continues the thread from its last checkpoint.
    state = app.invoke(begin if sys.argv[2] == "begin" else None, config, durability="sync")
    for message in state["messages"]:
        print(f"{message.type}: {message.content or message.tool_calls[0]['name']}")
