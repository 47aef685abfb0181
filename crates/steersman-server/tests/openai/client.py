"""Talks to a server with OpenAI's own client. The server has the definition `desk`: a refund that a manager approves."""

import json
import os

from openai import APIStatusError, OpenAI, PermissionDeniedError

client = OpenAI(base_url=os.environ["STEERSMAN_AT"] + "/openai/v1", api_key=os.environ["STEERSMAN_TOKEN"])
APPROVE = [{"type": "function", "function": {"name": "approve", "parameters": {"type": "object"}}}]


def models():
    assert [model.id for model in client.models.list()] == ["desk"]
    assert client.models.retrieve("desk").owned_by == "steersman"
    assert client.models.retrieve("desk/desk").id == "desk/desk"


def chat():
    messages = [{"role": "user", "content": "My kettle is broken."}]
    asks = client.chat.completions.create(model="desk", messages=messages, tools=APPROVE)
    choice = asks.choices[0]
    assert choice.finish_reason == "tool_calls", asks
    assert asks.usage.total_tokens == asks.usage.prompt_tokens + asks.usage.completion_tokens > 0
    call = choice.message.tool_calls[0]
    assert json.loads(call.function.arguments)["arguments"] == {"cents": 3990}
    messages.append(choice.message)
    messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"approve": True})})
    paid = client.chat.completions.create(model="desk", messages=messages, tools=APPROVE)
    assert paid.choices[0].message.content == "Paid.", paid
    messages.append(paid.choices[0].message)

    # The same message again is another answer: the session goes back.
    messages.append({"role": "user", "content": "And now?"})
    texts, ids = [], set()
    for _ in range(2):
        text, usage = "", None
        stream = client.chat.completions.create(
            model="desk", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        for chunk in stream:
            ids.add(chunk.id)
            usage = chunk.usage or usage
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
        assert usage.total_tokens > 0
        texts.append(text)
    assert texts == ["To: And now?"] * 2, texts
    sessions = {id.rsplit("-", 1)[0] for id in ids | {asks.id, paid.id}}
    assert len(ids) == 2 and len(sessions) == 1, ids


def responses():
    asks = client.responses.create(model="desk", input="My kettle is broken.")
    assert [item.type for item in asks.output] == ["mcp_call", "mcp_approval_request"], asks
    asked = asks.output[-1]
    assert json.loads(asked.arguments) == {"cents": 3990}
    decision = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    with client.responses.stream(model="desk", previous_response_id=asks.id, input=[decision]) as stream:
        events = list(stream)
        paid = stream.get_final_response()
    assert paid.output_text == "Paid." and paid.status == "completed", paid
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Paid."
    assert client.responses.retrieve(paid.id).output_text == "Paid."

    # A client that lost the stream goes on behind the last event that it has.
    raw = list(client.responses.retrieve(paid.id, stream=True))
    rest = list(client.responses.retrieve(paid.id, stream=True, starting_after=raw[2].sequence_number))
    assert [e.sequence_number for e in rest] == [e.sequence_number for e in raw[3:]]

    following = [client.responses.create(model="desk", previous_response_id=paid.id, input=text) for text in ("Now?", "Well?")]
    assert [response.output_text for response in following] == ["To: Now?", "To: Well?"]
    assert len({response.conversation.id for response in following + [asks]}) == 1
    later = client.responses.create(model="desk", conversation=asks.conversation.id, input="Go on.", background=True)
    while later.status == "in_progress":
        later = client.responses.retrieve(later.id)
    assert later.output_text == "Still here.", later
    assert client.responses.cancel(later.id).status == "completed"


def errors():
    for call, status in [
        (lambda: client.chat.completions.create(model="other", messages=[{"role": "user", "content": "x"}]), 404),
        (lambda: client.chat.completions.create(model="desk", messages=[{"role": "user", "content": "x"}], n=2), 400),
        (lambda: client.responses.retrieve("resp_none_1"), 404),
        (lambda: OpenAI(base_url=client.base_url, api_key="stm_wrong").models.list(), 401),
    ]:
        try:
            call()
        except APIStatusError as error:
            assert error.status_code == status and error.code and error.message, error
        else:
            raise AssertionError(status)
    reader = OpenAI(base_url=client.base_url, api_key=os.environ["STEERSMAN_READER"])
    assert [model.id for model in reader.models.list()] == ["desk"]
    try:
        reader.responses.create(model="desk", input="Hello.")
    except PermissionDeniedError as error:
        assert "write" in error.message, error
    else:
        raise AssertionError("it may not write")


for part in (models, chat, responses, errors):
    part()
    print(part.__name__, "ok")
