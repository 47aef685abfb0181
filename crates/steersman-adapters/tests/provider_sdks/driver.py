"""Calls models with the SDKs of their providers, and signs with them.

Reads a list of jobs from standard input, as JSON: what to do, and the address of a server. Prints a list of what came of each, in order.

* `read`: asks once. Tells what the SDK read: its text, the text of the pieces, its calls, its tokens (input, cached, output, reasoning), the
  reason for the end, and the name of the model; or the class of the error.
* `talk`: asks, and sends the results of the two calls that the answer has, with a schema for the next answer.
* `take`: sends a body that Steersman made.
* `sign`: signatures of `scripts/aws-vectors.py`. `token`, `login`: asks for an access token.
"""

import json
import os
import runpy
import sys

# The accounts of the person who runs this are no part of it.
for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
    os.environ[name] = os.devnull
KEY = "sk-test-key"


def told(text, streamed, calls, usage, finish, model):
    """Calls are their id, their name and their arguments, which are JSON, or a text that is none."""
    def read(arguments):
        if not isinstance(arguments, str):
            return arguments or {}
        try:
            return json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            return arguments
    calls = [[id or None, name, read(arguments)] for id, name, arguments in calls]
    return {"text": text or None, "streamed": streamed or None, "calls": calls, "usage": usage, "finish": finish, "model": model or None}


# ---- OpenAI ---------------------------------------------------------------------------------------------------------


def openai_client(job):
    import openai
    if "version" in job:
        return openai.AzureOpenAI(azure_endpoint=job["url"], api_version=job["version"], api_key=KEY, max_retries=0)
    return openai.OpenAI(base_url=job["url"] + job.get("folder", "/v1"), api_key=KEY, max_retries=0)


def answer():
    """The class whose schema is that of the last answer. Its name is the name of the schema."""
    import pydantic
    return pydantic.create_model("answer", city=(str, ...), sum=(int, ...))


def chat_ask(job, streamed="", **asked):
    """Returns the answer, and the text of its pieces."""
    from openai.lib.streaming.chat import ChatCompletionStreamState
    asked = {"model": "test", **asked}
    if not job["stream"]:
        return openai_client(job).chat.completions.create(stream=False, **asked), None
    state = ChatCompletionStreamState()
    for chunk in openai_client(job).chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked):
        state.handle_chunk(chunk)
        streamed += "".join(choice.delta.content or "" for choice in chunk.choices if choice.index == 0)
    return state.current_completion_snapshot, streamed


def chat_read(job):
    whole, streamed = chat_ask(job, messages=[{"role": "user", "content": "Hi"}])
    first, usage = whole.choices[0], [0, 0, 0, 0]
    if whole.usage:
        read, made = whole.usage.prompt_tokens_details, whole.usage.completion_tokens_details
        usage = [whole.usage.prompt_tokens, read and read.cached_tokens or 0, whole.usage.completion_tokens, made and made.reasoning_tokens or 0]
    message = first.message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []]
    return told(message.content or message.refusal, streamed, calls, usage, first.finish_reason, whole.model)


def chat_talk(job):
    from openai.lib._parsing import type_to_response_format_param
    tools = [{"type": "function", "function": tool} for tool in job["tools"]]
    messages = [{"role": "system", "content": job["system"]}, {"role": "user", "content": job["user"]}]
    asked = {"messages": messages, "tools": tools, "temperature": job["temperature"], "max_completion_tokens": job["max_tokens"]}
    whole, _ = chat_ask({**job, "stream": True}, **asked)
    said = whole.choices[0].message
    messages.append(said)
    for call, result in zip(said.tool_calls, job["results"], strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    chat_ask({**job, "stream": False}, response_format=type_to_response_format_param(answer()), **asked)


def responses_read(job):
    whole, streamed = None, ""
    asked = {"model": "test", "input": "Hi"}
    if job["stream"]:
        for event in openai_client(job).responses.create(stream=True, **asked):
            if event.type == "response.output_text.delta":
                streamed += event.delta
            elif event.type in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
                whole = event.response
            elif event.type == "error":
                raise RuntimeError(event.message)
        if whole is None:
            raise EOFError
    else:
        whole = openai_client(job).responses.create(stream=False, **asked)
    if whole.error:
        raise RuntimeError(whole.error.message)
    text = whole.output_text
    for item in whole.output:
        if item.type == "message" and not text:
            text = "".join(part.refusal for part in item.content if part.type == "refusal")
    calls = [(item.call_id, item.name, item.arguments) for item in whole.output if item.type == "function_call"]
    read, made = whole.usage.input_tokens_details, whole.usage.output_tokens_details
    usage = [whole.usage.input_tokens, read.cached_tokens, whole.usage.output_tokens, made.reasoning_tokens]
    finish = whole.incomplete_details.reason if whole.incomplete_details else whole.status
    return told(text, streamed, calls, usage, finish, whole.model)


def responses_talk(job):
    # Nothing is stored, so the reasoning is asked for in the form that can be sent back.
    asked = {
        "model": "test", "temperature": job["temperature"], "max_output_tokens": job["max_tokens"], "store": False,
        "include": ["reasoning.encrypted_content"], "tools": [{"type": "function", "strict": False, **tool} for tool in job["tools"]],
    }
    said = [{"role": "system", "content": job["system"]}, {"role": "user", "content": job["user"]}]
    client = openai_client(job)
    for event in client.responses.create(stream=True, input=said, **asked):
        if event.type == "response.completed":
            said += event.response.output
    calls = [item for item in said if getattr(item, "type", None) == "function_call"]
    for call, result in zip(calls, job["results"], strict=True):
        said.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    client.responses.parse(stream=False, input=said, text_format=answer(), **asked)


# ---- Anthropic ------------------------------------------------------------------------------------------------------


def messages_ask(job, **asked):
    """Returns the answer, and the text of its pieces."""
    import anthropic
    client = anthropic.Anthropic(base_url=job["url"], api_key=KEY, max_retries=0)
    asked = {"model": "test", "max_tokens": 8192, **asked}
    if not job["stream"]:
        return client.messages.create(stream=False, **asked), None
    with client.messages.stream(**asked) as stream:
        streamed = "".join(stream.text_stream)
        return stream.get_final_message(), streamed


def messages_read(job):
    whole, streamed = messages_ask(job, messages=[{"role": "user", "content": "Hi"}])
    text = "".join(block.text for block in whole.content if block.type == "text")
    calls = [(block.id, block.name, block.input) for block in whole.content if block.type == "tool_use"]
    # Anthropic counts cached tokens beside the others.
    cached, written = whole.usage.cache_read_input_tokens or 0, whole.usage.cache_creation_input_tokens or 0
    usage = [whole.usage.input_tokens + cached + written, cached, whole.usage.output_tokens, 0]
    return told(text, streamed, calls, usage, whole.stop_reason, whole.model)


def messages_talk(job):
    tools = [{"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]} for tool in job["tools"]]
    said = [{"role": "user", "content": [{"type": "text", "text": job["user"]}]}]
    asked = {
        "system": [{"type": "text", "text": job["system"]}], "tools": tools, "messages": said, "max_tokens": job["max_tokens"],
        # The SDK has no name for it any more; the server knows it.
        "extra_body": {"temperature": job["temperature"]},
    }
    whole, _ = messages_ask({**job, "stream": True}, **asked)
    calls = [block.id for block in whole.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": id, "content": result} for id, result in zip(calls, job["results"], strict=True)]
    said += [{"role": "assistant", "content": whole.content}, {"role": "user", "content": results}]
    messages_ask({**job, "stream": False}, output_config={"format": {"type": "json_schema", "schema": job["output"]}}, **asked)


# ---- Google ---------------------------------------------------------------------------------------------------------


def gemini_client(job):
    from google import genai
    from google.genai import types
    # The version is in our address; the SDK takes another one by itself.
    options = types.HttpOptions(base_url=job["url"], api_version="v1beta", retry_options=types.HttpRetryOptions(attempts=1))
    if job["of"] == "vertex":
        from google.oauth2.credentials import Credentials
        options.api_version = "v1"
        return genai.Client(vertexai=True, project="p", location="eu", credentials=Credentials(KEY), http_options=options)
    return genai.Client(api_key=KEY, http_options=options)


def gemini_ask(job, contents, config=None):
    """Returns the chunks of the answer."""
    client = gemini_client(job)
    asked = {"model": job.get("model", "gemini-test"), "contents": contents, "config": config}
    if job["stream"]:
        return list(client.models.generate_content_stream(**asked))
    return [client.models.generate_content(**asked)]


def gemini_read(job):
    chunks = gemini_ask(job, "Hi")
    text, calls, finish, model, counts = "", [], None, None, {}
    for chunk in chunks:
        model = chunk.model_version or model
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            finish = chunk.prompt_feedback.block_reason.value
        for name, count in (chunk.usage_metadata.model_dump() if chunk.usage_metadata else {}).items():
            if count is not None:
                counts[name] = count
        for candidate in chunk.candidates or []:
            if candidate.index:
                continue
            finish = candidate.finish_reason.value if candidate.finish_reason else finish
            for part in candidate.content and candidate.content.parts or []:
                if part.function_call:
                    calls.append((part.function_call.id, part.function_call.name, part.function_call.args))
                elif part.text and not part.thought:
                    text += part.text
    # Google counts thoughts beside the answer.
    thoughts = counts.get("thoughts_token_count", 0)
    output = counts.get("candidates_token_count", 0) + thoughts
    usage = [counts.get("prompt_token_count", 0), counts.get("cached_content_token_count", 0), output, thoughts]
    return told(text, text if job["stream"] else None, calls, usage, finish, model)


def gemini_talk(job):
    from google.genai import types
    tools = [
        types.FunctionDeclaration(name=tool["name"], description=tool["description"], parameters_json_schema=tool["parameters"])
        for tool in job["tools"]
    ]
    settings = {
        "system_instruction": job["system"], "tools": [types.Tool(function_declarations=tools)], "temperature": job["temperature"],
        "max_output_tokens": job["max_tokens"],
    }
    contents = [types.Content(role="user", parts=[types.Part(text=job["user"])])]
    chunks = gemini_ask({**job, "stream": True}, contents, types.GenerateContentConfig(**settings))
    said = types.Content(role="model", parts=[part for chunk in chunks for part in chunk.candidates[0].content.parts])
    calls = [part.function_call for part in said.parts if part.function_call]
    results = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": result}))
        for call, result in zip(calls, job["results"], strict=True)
    ]
    contents += [said, types.Content(role="user", parts=results)]
    settings |= {"response_mime_type": "application/json", "response_json_schema": job["output"]}
    gemini_ask({**job, "stream": False}, contents, types.GenerateContentConfig(**settings))


def token(job):
    import google.auth.transport.requests
    from google.oauth2 import service_account
    account = service_account.Credentials.from_service_account_info(job["account"], scopes=["https://www.googleapis.com/auth/cloud-platform"])
    account.refresh(google.auth.transport.requests.Request())
    return account.token


def login(job):
    import google.auth.transport.requests
    from google.oauth2.credentials import Credentials
    names = ("token_uri", "refresh_token", "client_id", "client_secret")
    person = Credentials(None, **{name: job["account"][name] for name in names})
    person.refresh(google.auth.transport.requests.Request())
    return person.token


# ---- Amazon ---------------------------------------------------------------------------------------------------------


def bedrock_client(job):
    import botocore.config
    import botocore.session
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    return botocore.session.Session().create_client(
        "bedrock-runtime", region_name="eu-central-1", endpoint_url=job["url"], aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret", config=config)


def bedrock_ask(job, **asked):
    """Returns the message, the text of its pieces, the reason for its end, and the tokens."""
    client, asked = bedrock_client(job), {"modelId": job.get("model", "test"), **asked}
    if not job["stream"]:
        whole = client.converse(**asked)
        return whole["output"]["message"], None, whole["stopReason"], whole.get("usage", {})
    blocks, streamed, finish, usage = {}, "", None, {}
    for event in client.converse_stream(**asked)["stream"]:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            piece, at = event["contentBlockDelta"]["delta"], event["contentBlockDelta"]["contentBlockIndex"]
            if "text" in piece:
                blocks.setdefault(at, {"text": ""})["text"] += piece["text"]
                streamed += piece["text"]
            elif "toolUse" in piece:
                blocks[at]["toolUse"]["input"] += piece["toolUse"]["input"]
        elif "messageStop" in event:
            finish = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            usage = event["metadata"]["usage"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    if finish is None:
        raise EOFError
    return {"role": "assistant", "content": list(blocks.values())}, streamed, finish, usage


def bedrock_read(job):
    message, streamed, finish, usage = bedrock_ask(job, messages=[{"role": "user", "content": [{"text": "Hi"}]}])
    text = "".join(block.get("text", "") for block in message["content"])
    calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    calls = [(call["toolUseId"], call["name"], call["input"]) for call in calls]
    # Amazon counts cached tokens beside the others.
    count = lambda *names: sum(usage.get(name, 0) for name in names)
    tokens = [count("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"), count("cacheReadInputTokens"), count("outputTokens"), 0]
    return told(text, streamed, calls, tokens, finish, None)


def bedrock_talk(job):
    tools = [
        {"toolSpec": {"name": tool["name"], "description": tool["description"], "inputSchema": {"json": tool["parameters"]}}}
        for tool in job["tools"]
    ]
    messages = [{"role": "user", "content": [{"text": job["user"]}]}]
    asked = {
        "messages": messages, "system": [{"text": job["system"]}], "toolConfig": {"tools": tools},
        "inferenceConfig": {"maxTokens": job["max_tokens"], "temperature": job["temperature"]},
    }
    said, *_ = bedrock_ask({**job, "stream": True}, **asked)
    calls = [block["toolUse"]["toolUseId"] for block in said["content"] if "toolUse" in block]
    results = [
        {"toolResult": {"toolUseId": id, "content": [{"text": result}]}} for id, result in zip(calls, job["results"], strict=True)
    ]
    messages += [said, {"role": "user", "content": results}]
    schema = {"name": "answer", "schema": json.dumps(job["output"], separators=(",", ":"))}
    form = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
    bedrock_ask({**job, "stream": False}, outputConfig=form, **asked)


def bedrock_take(job):
    bedrock_ask(job, **job["body"])


def sign(job):
    return runpy.run_path(job["script"])["signatures"](job["seed"])


# ---- the jobs -------------------------------------------------------------------------------------------------------


JOBS = {
    ("read", "chat"): chat_read, ("talk", "chat"): chat_talk, ("talk", "azure"): chat_talk,
    ("read", "responses"): responses_read, ("talk", "responses"): responses_talk,
    ("read", "messages"): messages_read, ("talk", "messages"): messages_talk,
    ("read", "gemini"): gemini_read, ("talk", "gemini"): gemini_talk, ("talk", "vertex"): gemini_talk,
    ("read", "bedrock"): bedrock_read, ("talk", "bedrock"): bedrock_talk, ("take", "bedrock"): bedrock_take,
    ("sign", "bedrock"): sign, ("token", "vertex"): token, ("login", "vertex"): login,
}


def done(job):
    act = JOBS[job["do"], job["of"]]
    if job["do"] != "read":
        return act(job)
    try:
        return act(job)
    except Exception as error:
        # Which error an SDK has for an answer that it cannot read is a part of what is compared.
        return {"failed": type(error).__name__}


json.dump([done(job) for job in json.load(sys.stdin)], sys.stdout)
