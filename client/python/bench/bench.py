# SPDX-License-Identifier: Apache-2.0
"""One client of the benchmark suite `clients`: bench.py WAY ADDRESS WORKLOAD METHOD BODY WANT MILLISECONDS. It calls in a closed loop, and
prints the calls, the nanoseconds that they took, and the 50th, 99th and 99.9th percentile of one round.

raw      a bare connected socket, which sends the same packet again and again and looks at no answer
client   Client
asyncio  AsyncClient
raw64, client64, asyncio64: rounds of 64 at once
"""

import asyncio
import socket
import sys
import time
from collections.abc import Callable

from lambdanic import AsyncClient, Client, Error, Reply, Request
from lambdanic.endpoint import split_address
from lambdanic.packet import encode
from lambdanic.wire import PORT, Header, Type

ROOM = 512


class Rounds:
    def __init__(self, duration: float) -> None:
        self.times: list[int] = []
        self._duration = int(duration * 1e9)
        self._start = self._last = time.perf_counter_ns()

    def again(self) -> bool:
        """Ends a round, and reports whether there is time for another."""
        now = time.perf_counter_ns()
        self.times.append(now - self._last)
        self._last = now
        return now - self._start < self._duration

    def report(self, many: int) -> None:
        times = sorted(self.times)
        print(len(times) * many, self._last - self._start, *(times[int(len(times) * part)] for part in (0.5, 0.99, 0.999)))


def check(outcome: Reply | Error, want: bytes) -> None:
    if isinstance(outcome, Error) or outcome.status or outcome.body != want:
        sys.exit(f"wrong answer: {outcome}")


def raw(address: str, request: Request, many: int) -> Callable[[], None]:
    host, port = split_address(address, PORT)
    family, kind, _, _, to = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    bare = socket.socket(family, kind)
    bare.connect(to)
    assert isinstance(request.function, int)
    header = Header(
        type=Type.REQUEST, workload=request.function, method=request.method, count=1, length=len(request.body),
        message_len=len(request.body),
    )  # fmt: skip
    packet = encode(header, request.body, ROOM)

    def one_round() -> None:
        for _ in range(many):
            bare.send(packet)
        for _ in range(many):
            bare.recv(2048)

    return one_round


def threads(address: str, request: Request, many: int, want: bytes) -> Callable[[], None]:
    client = Client(address)
    requests = [request] * many

    def one_round() -> None:
        for outcome in client.call_many(requests):
            check(outcome, want)

    return one_round


async def tasks(address: str, request: Request, many: int, want: bytes, duration: float) -> None:
    async with AsyncClient(address) as client:
        requests = [request] * many
        await client.call_many(requests)
        rounds = Rounds(duration)
        while rounds.again():
            for outcome in await client.call_many(requests):
                check(outcome, want)
    rounds.report(many)


def main() -> None:
    way, address, workload, method, body, want, milliseconds = sys.argv[1:]
    request = Request(int(workload), body.encode(), int(method))
    many, duration = 64 if way.endswith("64") else 1, int(milliseconds) / 1000
    if way.startswith("asyncio"):
        asyncio.run(tasks(address, request, many, want.encode(), duration))
        return
    one_round = raw(address, request, many) if way.startswith("raw") else threads(address, request, many, want.encode())
    one_round()
    rounds = Rounds(duration)
    while rounds.again():
        one_round()
    rounds.report(many)


if __name__ == "__main__":
    main()
