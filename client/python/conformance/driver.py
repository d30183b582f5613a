# SPDX-License-Identifier: Apache-2.0
"""The driver for test/conformance: commands in, answers out, a line of JSON each. With `asyncio` as its argument, calls go through
AsyncClient."""

import asyncio
import json
import sys
from typing import Any

from lambdanic import AsyncClient, Client, Error, Reply, Request, RPCError, errors
from lambdanic.packet import BadPacket, NotRPC, encode, parse, placement
from lambdanic.wire import HEADER_LEN, Header, Type

Object = dict[str, Any]

NAMES: dict[type[Error], str] = {
    errors.DeadlineExceeded: "deadline exceeded",
    errors.RequestTooLarge: "request too large",
    errors.ReplyTooLarge: "reply too large",
    errors.NoSuchFunction: "no such function",
    errors.GatewayError: "gateway",
    errors.UnknownWorkload: "unknown workload",
    errors.OverQuota: "over quota",
    errors.BadTag: "bad tag",
    errors.Malformed: "malformed",
    errors.LambdaFault: "lambda fault",
    errors.TooLarge: "too large",
    errors.Busy: "busy",
    errors.ServiceTimeout: "time-out",
    errors.Unreachable: "unreachable",
    errors.Stale: "stale",
    errors.TooLate: "deadline",
}


def read_header(fields: Object) -> Header:
    values = {key: int(value, 0) if isinstance(value, str) else value for key, value in fields.items()}
    values["message_len"] = values.pop("message_length")
    return Header(**values)


def write_header(header: Header) -> Object:
    fields: Object = header._asdict()
    fields["message_length"] = fields.pop("message_len")
    fields["request"], fields["tag"] = f"{header.request:#018x}", f"{header.tag:#018x}"
    return fields


def decode(command: Object) -> Object:
    datagram = bytes.fromhex(command["packet"])
    try:
        header, payload = parse(datagram)
        if header.type in (Type.REQUEST, Type.RESPONSE):
            placement(header)
    except NotRPC:
        return {"error": "not λ-RPC"}
    except BadPacket:
        return {"error": "malformed"}
    return {"header": write_header(header), "payload": payload.hex(), "padding": len(datagram) - HEADER_LEN - len(payload)}


def encode_packet(command: Object) -> Object:
    payload = bytes.fromhex(command["payload"])
    return {"packet": encode(read_header(command["header"]), payload, len(payload) + command["padding"]).hex()}


def request_of(call: Object) -> Request:
    deadline = call.get("deadline_us", 0)
    return Request(
        call.get("name") or call["workload"], bytes.fromhex(call["body"]), call.get("method", 0),
        deadline / 1e6 if deadline else None, call.get("reply_room", 0), call.get("once", False),
    )  # fmt: skip


def outcome_of(outcome: Reply | Error) -> Object:
    if isinstance(outcome, Reply):
        return {"status": int(outcome.status), "revision": outcome.revision, "body": outcome.body.hex(), "resends": outcome.resends}
    need = outcome.need if isinstance(outcome, RPCError) else 0
    return {"error": NAMES.get(type(outcome), "unknown"), "need": need, "text": str(outcome)}


def options_of(command: Object) -> Object:
    return {
        "address": command.get("address") or None, "gateway": command.get("gateway") or None,
        "credentials": command.get("credentials") or None, "namespace": command.get("namespace") or None,
        "timeout": command["timeout_ms"] / 1000, "reply_room": command["reply_room"], "max_reply": command["max_reply"],
        "resend": not command.get("without_resend", False), "key": command.get("key"),
        "tag_payload": not command.get("tag_header_only", False),
    }  # fmt: skip


class Threads:
    def __init__(self, options: Object) -> None:
        self.client = Client(**options)

    def call(self, requests: list[Request], at_once: bool) -> list[Reply | Error]:
        if at_once:
            return self.client.call_many(requests)
        return [self.one(request) for request in requests]

    def one(self, request: Request) -> Reply | Error:
        try:
            return self.client.call(
                request.function, request.body, method=request.method, deadline=request.deadline, reply_room=request.reply_room,
                once=request.once,
            )  # fmt: skip
        except Error as e:
            return e

    def close(self) -> None:
        self.client.close()


class Tasks:
    def __init__(self, options: Object) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncClient(**options)

    def call(self, requests: list[Request], at_once: bool) -> list[Reply | Error]:
        return self.runner.run(self._call(requests, at_once))

    async def _call(self, requests: list[Request], at_once: bool) -> list[Reply | Error]:
        if at_once:
            return await self.client.call_many(requests)
        return [await self._one(request) for request in requests]

    async def _one(self, request: Request) -> Reply | Error:
        try:
            return await self.client.call(
                request.function, request.body, method=request.method, deadline=request.deadline, reply_room=request.reply_room,
                once=request.once,
            )  # fmt: skip
        except Error as e:
            return e

    def close(self) -> None:
        self.runner.run(self.client.close())
        self.runner.close()


def main() -> None:
    flavour = Tasks if sys.argv[1:] == ["asyncio"] else Threads
    client: Threads | Tasks | None = None
    for line in sys.stdin:
        command = json.loads(line)
        answer: Object = {}
        match command["do"]:
            case "decode":
                answer = decode(command)
            case "encode":
                answer = encode_packet(command)
            case "open":
                client = flavour(options_of(command))
            case "call":
                assert client is not None
                requests = [request_of(call) for call in command["calls"]]
                answer = {"outcomes": [outcome_of(outcome) for outcome in client.call(requests, command.get("at_once", False))]}
            case "stats":
                assert client is not None
                answer = {name: getattr(client.client.stats, name) for name in client.client.stats.__slots__}
            case "close":
                assert client is not None
                client.close()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
