# SPDX-License-Identifier: Apache-2.0
"""Looking functions up at a server that is not a gateway."""

import contextlib
import socket
import threading
import unittest
from collections.abc import Iterator

from lambdanic import Function, Gateway, GatewayError, NoSuchFunction


@contextlib.contextmanager
def answering(text: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Gives everyone the same answer. Yields the address and the requests."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(text)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", asked
        thread.join()


FUNCTION = b'{"name": "echo", "workload": 9, "revision": 2, "endpoint": "[::1]:4370", "labels": {"workload": "1"}}'


class TestGateway(unittest.TestCase):
    def test_request(self) -> None:
        with answering(b"HTTP/1.1 200 OK\r\n\r\n" + FUNCTION) as (address, asked):
            gateway = Gateway(address, credentials="admin:a:b", namespace="a b")
            self.assertEqual(gateway.look_up("e/c"), Function("e/c", 9, 2, "[::1]:4370"))
        self.assertTrue(asked[0].startswith(b"GET /system/function/e%2Fc?namespace=a%20b HTTP/1.1\r\n"), asked[0])
        self.assertIn(b"Authorization: Basic YWRtaW46YTpi\r\n", asked[0])

    def test_nonsense(self) -> None:
        for text, error in {
            b"": GatewayError,
            b"ready\r\n\r\n": GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n": GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n[]": GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n{}": GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n" + FUNCTION[:-1]: GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n" + FUNCTION.replace(b": 9", b": 4294967296"): GatewayError,
            b"HTTP/1.1 200 OK\r\n\r\n" + FUNCTION.replace(b": 9", b': "9"'): GatewayError,
            b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + FUNCTION: GatewayError,
            b"HTTP/1.1 500 No\r\n\r\n" + FUNCTION: GatewayError,
            b"HTTP/1.1 404 Not Found\r\n\r\n": NoSuchFunction,
        }.items():
            with answering(text) as (address, _), self.assertRaises(error, msg=text) as caught:
                Gateway(address).look_up("echo")
            self.assertIs(type(caught.exception), error)

    def test_memory(self) -> None:
        with answering(b"HTTP/1.1 200 OK\r\n\r\n" + FUNCTION) as (address, _):
            gateway = Gateway(address, timeout=5)
            first = gateway.find("echo")
            self.assertIs(gateway.find("echo"), first)
        with self.assertRaises(GatewayError):  # it is asked again, and is gone
            gateway.find("echo", stale=first)
        self.assertIs(gateway.find("echo"), first)
        gateway.forget(first)
        self.assertIsNone(gateway.known("echo"))
