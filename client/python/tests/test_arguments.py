# SPDX-License-Identifier: Apache-2.0
"""Bad arguments raise in the caller's frame, whichever way they come, and other calls of the same client go on."""

import asyncio
import math
import unittest
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from lambdanic import AsyncClient, Client, Request
from lambdanic.gateway import Gateway

from .network import Server
from .test_client import serve

NOT_WHOLE: list[Any] = ["1", 1.0, 1.5, None, True, b"1", [1], math.nan]
OUT_OF_RANGE: list[Any] = [-1, 1 << 32, -(1 << 70), 1 << 70]
NO_TIME: list[Any] = [0, 0.0, -1, -0.1, math.nan, math.inf, -math.inf, 10**400]
NO_NUMBER: list[Any] = ["1", True, b"1", [1], Decimal(1)]
NO_BYTES: list[Any] = ["text", 1, None, [1], {"a": 1}, 1.5, object()]
NO_TEXT: list[Any] = [1, b"name", ["name"], 1.5]

# Bad arguments of Request and call() by name, and their errors.
CALLS: list[tuple[str, list[Any], type[Exception]]] = [
    ("function", [1.5, b"name", None, [1], True], TypeError), ("function", [*OUT_OF_RANGE, "", "\ud800", "no gateway"], ValueError),
    ("body", NO_BYTES, TypeError),
    ("method", NOT_WHOLE, TypeError), ("method", OUT_OF_RANGE, ValueError),
    ("deadline", NO_NUMBER, TypeError), ("deadline", NO_TIME, ValueError),
    ("reply_room", NOT_WHOLE, TypeError), ("reply_room", OUT_OF_RANGE, ValueError),
    ("once", ["no", 1, None], TypeError),
]  # fmt: skip

CLIENTS: list[tuple[str, list[Any], type[Exception]]] = [
    ("address", NO_TEXT, TypeError), ("address", ["", "host:x", "host:65536"], ValueError),
    ("gateway", NO_TEXT, TypeError), ("gateway", ["", "unix:", "host:x", "http://", "https://host:1", "http:///x"], ValueError),
    ("timeout", [*NO_NUMBER, None], TypeError), ("timeout", NO_TIME, ValueError),
    ("reply_room", NOT_WHOLE, TypeError), ("reply_room", OUT_OF_RANGE, ValueError),
    ("max_reply", NOT_WHOLE, TypeError), ("max_reply", OUT_OF_RANGE, ValueError),
    ("resend", ["no", 1, None], TypeError), ("tag_payload", ["no", 1, None], TypeError),
]  # fmt: skip

GATEWAYS: list[tuple[str, list[Any], type[Exception]]] = [
    ("credentials", NO_TEXT, TypeError), ("credentials", ["\ud800"], ValueError),
    ("namespace", NO_TEXT, TypeError), ("namespace", ["\ud800"], ValueError),
]  # fmt: skip


class TestArguments(unittest.TestCase):
    def refuse(self, f: Callable[..., object], table: list[tuple[str, list[Any], type[Exception]]], **others: Any) -> None:
        for name, values, error in table:
            for value in values:
                with self.subTest(name=name, value=value), self.assertRaises(error):
                    f(**{**others, name: value})

    def test_clients(self) -> None:
        for kind in (Client, AsyncClient):
            self.refuse(kind, CLIENTS, address="127.0.0.1")
            self.refuse(kind, GATEWAYS, gateway="127.0.0.1:1")
        self.refuse(Gateway, [*GATEWAYS, *(row for row in CLIENTS if row[0] in ("gateway", "timeout"))], gateway="127.0.0.1:1")
        with self.assertRaises(TypeError):
            Gateway("127.0.0.1:1").look_up(1)  # type: ignore[arg-type]

    def test_calls(self) -> None:
        with serve(Server()) as address, Client(address) as client:
            self.refuse(client.call, CALLS, function=1)
            self.refuse(lambda **arguments: client.call_many([Request(1), Request(**arguments)]), CALLS, function=1)
            for no_request in (1, None, (1, b"")):
                with self.assertRaises(TypeError):
                    client.call_many([Request(1), no_request])  # type: ignore[list-item]
            self.assertEqual(client.stats.calls, 0)
            self.assertEqual(client.call(1, b"hello").body, b"hello")
            self.assertEqual([getattr(r, "body", r) for r in client.call_many([Request(1, b"a"), Request(1, b"b")])], [b"a", b"b"])

    def test_whatever_has_bytes_is_a_body(self) -> None:
        with serve(Server()) as address, Client(address) as client:
            for body in (bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"abcd").cast("I"), memoryview(b"a-b-c-d-")[::2]):
                self.assertEqual(client.call(1, body).body, b"abcd")  # type: ignore[arg-type]

    def test_longest_deadline(self) -> None:
        with serve(Server()) as address, Client(address, resend=False) as client:
            self.assertEqual(client.call(1, b"hello", deadline=1e300).body, b"hello")


class TestAsyncArguments(unittest.IsolatedAsyncioTestCase):
    async def test_calls(self) -> None:
        """A call is on its way while bad ones come, and is answered."""
        silent = [True]
        server = Server(handle=lambda body: body)
        answer = server.answer
        server.answer = lambda datagram: None if silent[0] else answer(datagram)  # type: ignore[method-assign]
        with serve(server) as address:
            async with AsyncClient(address) as client:
                task = asyncio.create_task(client.call(1, b"hello", deadline=60))
                while client.stats.sent == 0:
                    await asyncio.sleep(0)
                for name, values, error in CALLS:
                    for value in values:
                        arguments = {"function": 1, name: value}
                        with self.subTest(name=name, value=value):
                            with self.assertRaises(error):
                                await client.call(**arguments)
                            with self.assertRaises(error):
                                await client.call_many([Request(1), Request(**arguments)])
                with self.assertRaises(TypeError):
                    await client.call_many([Request(1), 1])  # type: ignore[list-item]
                self.assertEqual(client.stats.calls, 1)
                silent[0] = False
                self.assertEqual((await task).body, b"hello")
