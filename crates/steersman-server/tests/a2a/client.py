"""Calls `desk`, whose refunds a manager approves, with the official client of the Agent2Agent protocol."""

import asyncio
import os

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_data_parts, new_data_part, new_text_part
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

AT = os.environ["STEERSMAN_AT"] + "/a2a/desk"


async def connected(token, streaming):
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {os.environ[token]}"}, trust_env=False, timeout=60)
    return await create_client(AT, ClientConfig(streaming=streaming, httpx_client=http))


def message(id, *parts, **of):
    return SendMessageRequest(message=Message(message_id=id, role=Role.ROLE_USER, parts=parts, **of))


async def sent(client, request):
    """All updates of a message."""
    return [update async for update in client.send_message(request)]


def asked(status):
    """The data of the question."""
    assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED, status
    [question] = get_data_parts(status.message.parts)
    return question


async def blocking():
    client = await connected("STEERSMAN_TOKEN", streaming=False)
    [update] = await sent(client, message("b1", new_text_part("My kettle is broken.")))
    task = update.task
    question = asked(task.status)
    assert question["arguments"] == {"cents": 3990} and question["reply"] == "approve", question
    yes = new_data_part({"question": question["question"], "approve": True})
    [update] = await sent(client, message("b2", yes, task_id=task.id, context_id=task.context_id))
    assert update.task.status.state == TaskState.TASK_STATE_COMPLETED, update
    assert get_artifact_text(update.task.artifacts[-1]) == "Paid.", update
    same = await client.get_task(GetTaskRequest(id=task.id))
    assert same == update.task, (same, update.task)
    tasks = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
    assert [one.id for one in tasks.tasks] == [task.id] and tasks.total_size == 1, tasks
    try:
        await client.cancel_task(CancelTaskRequest(id=task.id))
        raise AssertionError("a task that is over was cancelled")
    except TaskNotCancelableError:
        pass
    print("blocking ok")


async def streaming():
    client = await connected("STEERSMAN_TOKEN", streaming=True)
    updates = await sent(client, message("s1", new_text_part("My kettle is broken.")))
    task = updates[0].task
    question = asked(updates[-1].status_update.status)
    calls = [get_data_parts(one.status_update.status.message.parts) for one in updates if one.HasField("status_update")]
    assert calls[0][0]["tool"] == "refund", calls
    no = new_data_part({"question": question["question"], "approve": False, "reason": "Too much."})
    updates = await sent(client, message("s2", no, task_id=task.id, context_id=task.context_id))
    assert updates[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, updates
    texts = [get_artifact_text(one.artifact_update.artifact) for one in updates if one.HasField("artifact_update")]
    assert texts == ["Paid."], texts
    # The same context goes on with another task.
    updates = await sent(client, message("s3", new_text_part("And now?"), context_id=task.context_id))
    assert updates[0].task.id != task.id and updates[0].task.context_id == task.context_id, updates
    print("streaming ok")


async def elsewhere():
    client = await connected("STEERSMAN_TOKEN", streaming=True)
    task = (await sent(client, message("e1", new_text_part("My kettle is broken."))))[0].task
    # A token that may not decide follows the task until it is decided.
    reader = await connected("STEERSMAN_READER", streaming=True)
    seen = await reader.get_task(GetTaskRequest(id=task.id))
    assert seen.status.state == TaskState.TASK_STATE_AUTH_REQUIRED, seen
    updates = reader.subscribe(SubscribeToTaskRequest(id=task.id))
    first = await anext(updates)
    assert MessageToDict(first.task)["status"]["state"] == "TASK_STATE_AUTH_REQUIRED", first
    # The follower's connection is cut, and opened again.
    await updates.aclose()
    updates = reader.subscribe(SubscribeToTaskRequest(id=task.id))
    await anext(updates)
    cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
    last = [update async for update in updates][-1]
    assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED, last
    for request, fault in [(task.id, UnsupportedOperationError), ("none-1", TaskNotFoundError)]:
        try:
            [update async for update in reader.subscribe(SubscribeToTaskRequest(id=request))]
            raise AssertionError("it was followed")
        except fault:
            pass
    print("elsewhere ok")


async def main():
    await blocking()
    await streaming()
    await elsewhere()


asyncio.run(main())
