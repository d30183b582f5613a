# SPDX-License-Identifier: Apache-2.0
"""The clients on a real socket."""

import asyncio
import contextlib
import socket
import threading
import unittest
from collections.abc import Iterator

from lambdanic import AsyncClient, Client, Closed, DeadlineExceeded, Error, GatewayError, Request
from lambdanic.endpoint import split_address

from .network import Server


@contextlib.contextmanager
def serve(server: Server | None, family: socket.AddressFamily = socket.AF_INET) -> Iterator[str]:
    """Serves on loopback. Without a server, nothing is answered. Yields the address."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        host = "127.0.0.1" if family == socket.AF_INET else "::1"
        sock.bind((host, 0))
        thread = threading.Thread(target=answer, args=(server, sock))
        thread.start()
        port = sock.getsockname()[1]
        try:
            yield f"{host}:{port}" if family == socket.AF_INET else f"[{host}]:{port}"
        finally:
            sock.sendto(b"end", (host, port))
            thread.join()


def answer(server: Server | None, sock: socket.socket) -> None:
    while (received := sock.recvfrom(4096))[0] != b"end":
        datagram, peer = received
        reply = server.answer(datagram) if server is not None else None
        if reply is not None:
            sock.sendto(reply, peer)


class TestClient(unittest.TestCase):
    def test_calls(self) -> None:
        for family in (socket.AF_INET, socket.AF_INET6):
            with serve(Server(), family) as address, Client(address) as client:
                self.assertEqual(client.call(1, b"hello", deadline=10).body, b"hello")
                requests = [Request(1, bytes(n * 50)) for n in range(100)]
                outcomes = client.call_many(requests)
                self.assertEqual([getattr(o, "body", o) for o in outcomes], [r.body for r in requests])
                self.assertEqual(client.stats.malformed, 0)

    def test_threads_share_a_client(self) -> None:
        with serve(Server()) as address, Client(address) as client:
            bodies: list[bytes] = []
            threads = [threading.Thread(target=lambda: bodies.extend(client.call(1, b"x").body for _ in range(20))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(bodies, [b"x"] * 80)

    def test_deadline(self) -> None:
        with serve(None) as address, Client(address) as client:
            with self.assertRaises(DeadlineExceeded) as caught:
                client.call(1, deadline=0.05)
            self.assertIsInstance(caught.exception, TimeoutError)
            self.assertIsNone(caught.exception.__cause__)

    def test_refusal_is_the_cause(self) -> None:
        with serve(None) as address:
            # Nothing listens here: a socket bound to any port of any address does not get a port that is taken at another address.
            refusing = address.replace("127.0.0.1", "127.0.0.42")
            with Client(refusing) as client:
                cause: BaseException | None = None
                deadline = 0.05
                while cause is None and deadline < 30:  # on a busy machine, a call may end before it hears anything
                    with self.assertRaises(DeadlineExceeded) as caught:
                        client.call(1, deadline=deadline)
                    cause, deadline = caught.exception.__cause__, 2 * deadline
        self.assertIsInstance(cause, ConnectionRefusedError)

    def test_closed(self) -> None:
        client = Client("127.0.0.1")
        client.close()
        with self.assertRaises(Closed):
            client.call(1)

    def test_misuse(self) -> None:
        with self.assertRaises(ValueError):
            Client()
        with Client("127.0.0.1") as client, self.assertRaises(ValueError):
            client.call("name")
        with Client(gateway="127.0.0.1:1") as client:
            with self.assertRaises(ValueError):
                client.call(1)
            with self.assertRaises(GatewayError):
                client.call("name")
        with self.assertRaises(ValueError):
            Client("no port:x")


class TestAsyncClient(unittest.IsolatedAsyncioTestCase):
    async def test_calls(self) -> None:
        with serve(Server()) as address:
            async with AsyncClient(address) as client:
                replies = await asyncio.gather(*(client.call(1, bytes(n * 50)) for n in range(100)))
                self.assertEqual([len(reply.body) for reply in replies], [n * 50 for n in range(100)])
                with self.assertRaises(Error):
                    await client.call(1, bytes(100 << 20))

    async def test_cancelled_task_gives_its_call_up(self) -> None:
        server = Server()
        with serve(None) as address:
            async with AsyncClient(address) as client:
                task = asyncio.create_task(client.call(1, b"hello"))
                while client.stats.sent == 0:
                    await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                [connection] = client._connections.values()
                self.assertEqual(connection.session._calls, {})
        self.assertEqual(server.runs, 0)

    async def test_close_ends_calls(self) -> None:
        with serve(None) as address:
            client = AsyncClient(address)
            task = asyncio.create_task(client.call(1, b"hello"))
            while client.stats.sent == 0:
                await asyncio.sleep(0)
            await client.close()
            with self.assertRaises(Closed):
                await task
            with self.assertRaises(Closed):
                await client.call(1)


class TestAddresses(unittest.TestCase):
    def test_split(self) -> None:
        for address, want in {
            "host": ("host", 4370), "host:1": ("host", 1), "10.0.0.2:99": ("10.0.0.2", 99),
            "::1": ("::1", 4370), "[::1]": ("::1", 4370), "[::1]:5": ("::1", 5),
        }.items():  # fmt: skip
            self.assertEqual(split_address(address, 4370), want)
        for address in ("", ":1", "[::1", "[::1]x", "host:x", "[]:1", "host:0", "host:-1", "host:65536", "host:" + "9" * 5000):
            with self.assertRaises(ValueError, msg=address):
                split_address(address, 4370)
