#!/usr/bin/env python3
"""Writes test data of Bedrock with botocore, which Amazon wrote: signatures of requests, and event streams.

    python3 -m venv VENV && VENV/bin/pip install botocore==1.44.8 && VENV/bin/python scripts/aws-vectors.py

The data are in crates/steersman-adapters/tests/it/bedrock: `signatures.json` has requests and the header that botocore gives them,
`frames.json` has bytes and what botocore's decoder makes of them, and `*.frames` are answers of ConverseStream. Running the script again
gives the same files.
"""

import binascii
import datetime
import json
import pathlib
import random
import struct

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer
from botocore.eventstream import InvalidHeadersLength, InvalidPayloadLength

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/steersman-adapters/tests/it/bedrock"
REFUSED = (ChecksumMismatch, InvalidHeadersLength, InvalidPayloadLength)
MODELS = [
    "anthropic.claude-haiku-4-5-20251001-v1%3A0",
    "amazon.nova-lite-v1%3A0",
    "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.amazon.nova-lite-v1%3A0",
    "a~b_c-d.e",
    "with%20blank",
    "%C3%A4",
]
HOSTS = ["bedrock-runtime.us-east-1.amazonaws.com", "127.0.0.1:18096", "gateway.example:8443", "localhost"]


def signatures(seed):
    dice = random.Random(seed)
    word = lambda chars, n: "".join(dice.choice(chars) for _ in range(n))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    rows = []
    for n in range(50):
        # The clock of botocore is set to a moment of the row.
        now = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=dice.randrange(31_536_000))
        botocore.auth.get_current_datetime = lambda *_, now=now, **__: now.replace(tzinfo=None)
        keys = Credentials(
            "AKIA" + word(letters, 16),
            word(letters + "abcdefghij+/", 40),
            word(letters + "abcdefghij+/=", 300) if n % 3 == 0 else None,
        )
        host, folder = dice.choice(HOSTS), dice.choice(["", "", "/gateway", "/a//b", "/a%2Fb"])
        path = f"{folder}/model/{dice.choice(MODELS)}/{dice.choice(['converse', 'converse-stream'])}"
        region = dice.choice(["us-east-1", "eu-central-1", "ap-southeast-2", "us-gov-west-1"])
        service = dice.choice(["bedrock", "bedrock", "bedrock", "execute-api"])
        kind = dice.choice(["application/json", "application/json", " application/json;   charset=utf-8 "])
        body = dice.choice(["", "{}", json.dumps({"messages": [{"role": "user", "content": [{"text": word("abc äöü\n", 40)}]}]})])
        request = AWSRequest("POST", f"https://{host}{path}", headers={"Content-Type": kind}, data=body.encode())
        botocore.auth.SigV4Auth(keys, service, region).add_auth(request)
        rows.append({
            "host": host, "path": path, "content_type": kind, "body": body, "id": keys.access_key, "secret": keys.secret_key,
            "token": keys.token, "region": region, "service": service, "time": request.headers["X-Amz-Date"],
            "authorization": request.headers["Authorization"],
        })
    return rows


def header(name, kind, value):
    head = bytes([len(name)]) + name.encode() + bytes([kind])
    if kind in (6, 7):
        return head + struct.pack(">H", len(value)) + value
    return head + value


def message(headers, payload):
    told = b"".join(header(*one) for one in headers)
    prelude = struct.pack(">II", 16 + len(told) + len(payload), len(told))
    start = prelude + struct.pack(">I", binascii.crc32(prelude)) + told + payload
    return start + struct.pack(">I", binascii.crc32(start))


def text(name, value):
    return (name, 7, value.encode())


def event(kind, payload):
    headers = [text(":event-type", kind), text(":content-type", "application/json"), text(":message-type", "event")]
    return message(headers, json.dumps(payload, ensure_ascii=False).encode())


def exception(kind, payload):
    headers = [text(":exception-type", kind), text(":content-type", "application/json"), text(":message-type", "exception")]
    return message(headers, json.dumps(payload).encode())


def read(data):
    """Returns what botocore's decoder makes of these bytes: its messages, or that it refuses them."""
    buffer, told = EventStreamBuffer(), []
    buffer.add_data(data)
    try:
        for one in buffer:
            told.append({"headers": {k: v for k, v in one.headers.items() if isinstance(v, str)}, "payload": one.payload.decode()})
    except REFUSED as error:
        return {"refused": type(error).__name__, "before": told}
    return {"messages": told}


def frames():
    one = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi ä"}})
    kinds = [
        ("yes", 0, b""), ("no", 1, b""), ("byte", 2, b"\x07"), ("short", 3, b"\x01\x02"), ("int", 4, b"\0\0\1\0"),
        ("long", 5, b"\0" * 7 + b"\x09"), ("bytes", 6, b"\xff\0"), text("text", "ä"), ("time", 8, b"\0" * 8), ("uuid", 9, bytes(range(16))),
    ]
    every = message(kinds + [text(":message-type", "event"), text(":event-type", "messageStart")], b'{"role":"assistant"}')
    failed = exception("throttlingException", {"message": "Too many tokens"})
    broken = message(
        [text(":message-type", "error"), text(":error-code", "InternalError"), text(":error-message", "It broke")], b"")
    bare = message([text(":message-type", "event"), text(":event-type", "contentBlockStop")], b"")
    flipped = [bytes([*one[:at], one[at] ^ bit, *one[at + 1:]]) for at, bit in ((1, 1), (5, 1), (9, 4), (20, 2), (len(one) - 1, 8), (len(one) - 9, 1))]
    short = struct.pack(">II", 20, 40)
    impossible = short + struct.pack(">I", binascii.crc32(short)) + bytes(20)
    large = struct.pack(">II", 25 * 1024 * 1024, 0)
    too_large = large + struct.pack(">I", binascii.crc32(large)) + bytes(40)
    rows = [one, one + every, every, failed, broken, bare, one + failed, one[:11], one[:12], one[:-1], impossible, too_large, *flipped]
    return [{"hex": row.hex(), **read(row)} for row in rows]


START = event("messageStart", {"role": "assistant", "p": "abcdef"})


def delta(at, delta):
    return event("contentBlockDelta", {"contentBlockIndex": at, "delta": delta, "p": "abcd"})


def stop(at):
    return event("contentBlockStop", {"contentBlockIndex": at, "p": "ab"})


def call(at, id, name):
    return event("contentBlockStart", {"contentBlockIndex": at, "start": {"toolUse": {"toolUseId": id, "name": name}}})


def end(reason, usage=None):
    usage = usage or {"inputTokens": 12, "outputTokens": 7, "totalTokens": 19}
    return event("messageStop", {"stopReason": reason}) + event("metadata", {"usage": usage, "metrics": {"latencyMs": 451}})


CACHED = {"inputTokens": 20, "outputTokens": 15, "totalTokens": 147, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 12}
STREAMS = {
    "text": START + delta(0, {"text": "Hello"}) + delta(0, {"text": ", ä"}) + stop(0) + end("end_turn", CACHED),
    "calls": START + delta(0, {"text": "Let me look."}) + stop(0) + call(1, "tooluse_a", "get_weather")
    + delta(1, {"toolUse": {"input": '{"city":'}}) + delta(1, {"toolUse": {"input": '"Bern"}'}}) + stop(1)
    + call(2, "tooluse_b", "add") + stop(2) + end("tool_use"),
    "thinking": START + delta(0, {"reasoningContent": {"text": "Six times "}}) + delta(0, {"reasoningContent": {"text": "seven."}})
    + delta(0, {"reasoningContent": {"signature": "c2ln"}}) + stop(0) + delta(1, {"text": "42"}) + stop(1) + end("end_turn"),
    "redacted": START + delta(0, {"reasoningContent": {"redactedContent": "cmVk"}}) + stop(0) + delta(1, {"text": "42"}) + stop(1)
    + end("end_turn"),
    "cut_by_length": START + delta(0, {"text": "It is lo"}) + stop(0) + end("max_tokens"),
    "filtered": START + delta(0, {"text": "Well"}) + stop(0) + end("guardrail_intervened"),
    "malformed": START + call(0, "tooluse_a", "add") + stop(0) + end("malformed_tool_use"),
    "throttled": START + delta(0, {"text": "He"}) + exception("throttlingException", {"message": "Too many tokens, please wait."}),
    "failed": START + exception("modelStreamErrorException", {"message": "It broke", "originalStatusCode": 500, "originalMessage": "x"}),
    "truncated": START + delta(0, {"text": "This answer is"}),
    "cut_inside": (START + delta(0, {"text": "This answer is"}))[:-20],
    "without_usage": START + delta(0, {"text": "Hello"}) + stop(0) + event("messageStop", {"stopReason": "end_turn"}),
    "corrupt": START + delta(0, {"text": "Hello"})[:-1] + b"\0",
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, rows in (("signatures", signatures(4711)), ("frames", frames())):
        text = "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    for name, data in STREAMS.items():
        told = read(data)
        assert ("refused" in told) == (name == "corrupt"), (name, told)
        (FOLDER / f"{name}.frames").write_bytes(data)


if __name__ == "__main__":
    main()
