# SPDX-License-Identifier: Apache-2.0
"""The client for threads."""

import select
import threading
import time
from collections.abc import Iterable
from functools import partial
from math import ceil
from queue import SimpleQueue
from typing import Self

from .connection import Base, Bell, Connection, Way
from .endpoint import Endpoint
from .errors import Closed, Error
from .gateway import Function
from .session import Reply, Request


_LONGEST_POLL = (1 << 31) - 1  # ms


class Client(Base[Connection]):
    """Makes calls. Several threads may use it, but wait for each other: better give each thread its own.

    >>> with Client("10.0.0.2") as client:
    ...     reply = client.call(65537, b"/hello", deadline=0.1)
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the sockets. It waits for calls of other threads."""
        with self._lock:
            self._closed = True
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def call(
        self, function: int | str, body: bytes = b"", *, method: int = 0, deadline: float | None = None, reply_room: int = 0,
        once: bool = False,
    ) -> Reply:  # fmt: skip
        """Calls a function by its name or workload ID, and returns its reply; raises an Error. The arguments are those of Request."""
        [outcome] = self.call_many([Request(function, body, method, deadline, reply_room, once)])
        if isinstance(outcome, Error):
            raise outcome
        return outcome

    def call_many(self, requests: Iterable[Request]) -> list[Reply | Error]:
        """Makes several calls at once, and waits for all. Each has its own outcome."""
        checked = [self._check(request) for request in requests]
        with self._lock:
            ways = self._start_all((request, None) for request in checked)
            self._drive(ways)
            again = {i: way for i, way in enumerate(ways) if isinstance(way, Way) and self._moved(way)}
            there = self._start_all((way.call.request, way.function) for way in again.values())
            self._drive(there)
            for i, way in zip(again, there, strict=True):
                ways[i] = way
        return [way if isinstance(way, Error) else self._outcome(way) for way in ways]

    def _start_all(self, requests: Iterable[tuple[Request, Function | None]]) -> list[Way[Connection] | Error]:
        """Begins calls: all of them, or none if one cannot begin, for instance because its name has no address."""
        ways: list[Way[Connection] | Error] = []
        try:
            for request, stale in requests:
                ways.append(self._start(request, stale))
        except BaseException:
            self._cancel(ways)
            raise
        return ways

    def _cancel(self, outcomes: list[Way[Connection] | Error]) -> None:
        for way in outcomes:
            if isinstance(way, Way):
                way.connection.cancel(way.call)

    def _start(self, request: Request, stale: Function | None) -> Way[Connection] | Error:
        """Begins a call. stale is where it failed before."""
        try:
            function = self._find(request, stale)
            connection = self._connect(function.address)
            return Way(function, connection, connection.start(request, function.workload))
        except Error as e:
            return e

    def _connect(self, address: str) -> Connection:
        if self._closed:
            raise Closed("the client was closed")
        connection = self._connections.get(address)
        if connection is None:
            connection = Connection(Endpoint(address), self._options, self.stats)
            self._connections[address] = connection
        return connection

    def _drive(self, outcomes: list[Way[Connection] | Error]) -> None:
        """Sends and receives until all calls are done."""
        mover = _Mover(self, outcomes)
        try:
            while True:
                ways = [way for way in outcomes if isinstance(way, Way) and not way.call.done]
                if not ways:
                    return
                connections = {way.connection for way in ways}
                wake = min(connection.send() for connection in connections)
                if any(not way.call.done for way in ways):
                    wait_for_any(connections, wake, mover.bell)
                mover.move()
        except BaseException:  # KeyboardInterrupt, for instance: nobody waits any more
            self._cancel(outcomes)
            raise
        finally:
            mover.close()


class _Mover:
    """Has calls go on where their functions are now."""

    def __init__(self, client: Client, outcomes: list[Way[Connection] | Error]) -> None:
        self.bell: Bell | None = None  # rings when answers come
        self._client = client
        self._outcomes = outcomes
        self._answers: SimpleQueue[tuple[int, Function | None]] = SimpleQueue()
        for i, way in enumerate(outcomes):
            if isinstance(way, Way) and way.function.name:
                way.call.on_silent = partial(self._ask, i, way.function)

    def _ask(self, i: int, stale: Function) -> None:
        bell = self.bell = self.bell or Bell()

        def tell(function: Function | None) -> None:
            self._answers.put((i, function))
            bell.ring()

        self._client._ask(stale, tell)

    def move(self) -> None:
        while not self._answers.empty():
            i, function = self._answers.get()
            way = self._outcomes[i]
            if function is None or isinstance(way, Error) or way.call.done:
                continue
            try:
                connection = self._client._connect(function.address) if way.elsewhere(function) else way.connection
            except (Error, OSError, ValueError):  # nowhere to go to
                continue
            call = way.call
            if way.elsewhere(function):
                way.connection.cancel(call)
                call = connection.start(call.request, function.workload, call)
            call.on_silent = partial(self._ask, i, function)
            self._outcomes[i] = Way(function, connection, call)

    def close(self) -> None:
        if self.bell is not None:
            self.bell.close()


def wait_for_any(connections: Iterable[Connection], until: float, bell: Bell | None = None) -> None:
    """Takes in what arrives, and waits for it."""
    poller = select.poll()
    by_fd = {connection.endpoint.fileno(): connection for connection in connections}
    for fd in by_fd:
        poller.register(fd, select.POLLIN)
    if bell is not None:
        poller.register(bell.fileno(), select.POLLIN)
    for fd, _ in poller.poll(min(ceil(max(0.0, until - time.monotonic()) * 1000), _LONGEST_POLL)):
        if fd in by_fd:
            by_fd[fd].receive()
        elif bell is not None:
            bell.hush()
