# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Self

from .connection import Base, Connection, Way
from .endpoint import Endpoint
from .errors import Closed, Error
from .gateway import Function
from .session import Call, Options, Reply, Request, Stats


class AsyncConnection(Connection):
    """It takes its turn when something arrives, when a packet has to be sent again, and when calls were begun."""

    def __init__(self, endpoint: Endpoint, options: Options, stats: Stats) -> None:
        super().__init__(endpoint, options, stats)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(endpoint.fileno(), self._readable)
        self._next_turn: asyncio.Handle | None = None
        self._due = inf  # when the next turn is

    def start(self, request: Request, workload: int, before: Call | None = None) -> Call:
        call = super().start(request, workload, before)
        self._take_turn_at(-inf)  # calls that other tasks begin now leave with this one
        return call

    async def wait(self, call: Call, ask: Callable[[Callable[[Function | None], None]], None] | None = None) -> Function | None:
        """Waits until the call is done, or until the gateway has said where its function is. The call ends with its task."""
        if call.done:
            return None
        done: asyncio.Future[Function | None] = self._loop.create_future()

        def end(function: Function | None) -> None:
            if not done.done():
                done.set_result(function)

        def tell(function: Function | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(heard, function)

        def heard(function: Function | None) -> None:
            if function is not None:
                end(function)

        call.on_done = lambda _: end(None)
        call.on_silent = None if ask is None else lambda: ask(tell)
        try:
            return await done
        except asyncio.CancelledError:
            self.cancel(call)
            raise

    def _readable(self) -> None:
        self.receive()
        self._turn()

    def _turn(self) -> None:
        if self._next_turn is not None:
            self._next_turn.cancel()
        self._next_turn, self._due = None, inf
        self._take_turn_at(self.send())

    def _take_turn_at(self, due: float) -> None:
        if due >= self._due:
            return
        if self._next_turn is not None:
            self._next_turn.cancel()
        wait = due - time.monotonic()
        self._next_turn = self._loop.call_later(wait, self._turn) if wait > 0 else self._loop.call_soon(self._turn)
        self._due = due

    def close(self) -> None:
        self._loop.remove_reader(self.endpoint.fileno())
        if self._next_turn is not None:
            self._next_turn.cancel()
        super().close()


class AsyncClient(Base[AsyncConnection]):
    """Makes calls for any number of tasks of one event loop. A task that is cancelled gives its call up.

    >>> async with AsyncClient("10.0.0.2") as client:
    ...     reply = await client.call(65537, b"/hello", deadline=0.1)
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the sockets. Calls in flight end with Closed."""
        self._closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def call(
        self, function: int | str, body: bytes = b"", *, method: int = 0, deadline: float | None = None, reply_room: int = 0,
        once: bool = False,
    ) -> Reply:  # fmt: skip
        """Calls a function by its name or workload ID, and returns its reply; raises an Error. The arguments are those of Request."""
        outcome = await self._call(self._check(Request(function, body, method, deadline, reply_room, once)))
        if isinstance(outcome, Error):
            raise outcome
        return outcome

    async def call_many(self, requests: Iterable[Request]) -> list[Reply | Error]:
        """Makes several calls at once, and waits for all. Each has its own outcome."""
        checked = [self._check(request) for request in requests]
        return await asyncio.gather(*(self._call(request) for request in checked))

    async def _call(self, request: Request) -> Reply | Error:
        try:
            way = await self._try(request, None)
            if self._moved(way):
                way = await self._try(request, way.function)
        except Error as e:
            return e
        return self._outcome(way)

    async def _try(self, request: Request, stale: Function | None) -> Way[AsyncConnection]:
        """Makes a call. stale is where it failed before."""
        function = self._known(request) if stale is None else None
        if function is None:
            function = await asyncio.to_thread(self._find, request, stale)
        connection = self._connections.get(function.address) or await self._connect(function.address)
        way = Way(function, connection, connection.start(request, function.workload))
        while not way.call.done:
            heard = await way.connection.wait(way.call, partial(self._ask, way.function) if way.function.name else None)
            if heard is not None:
                way = await self._go_on(way, heard)
        return way

    async def _go_on(self, way: Way[AsyncConnection], function: Function) -> Way[AsyncConnection]:
        """Has a call go on where its function is now."""
        if not way.elsewhere(function):
            return Way(function, way.connection, way.call)
        try:
            connection = self._connections.get(function.address) or await self._connect(function.address)
        except asyncio.CancelledError:
            way.connection.cancel(way.call)
            raise
        except (Error, OSError, ValueError):  # nowhere to go to
            return way
        if way.call.done:  # meanwhile
            return way
        way.connection.cancel(way.call)
        return Way(function, connection, connection.start(way.call.request, function.workload, way.call))

    async def _connect(self, address: str) -> AsyncConnection:
        endpoint = await asyncio.to_thread(Endpoint, address)
        known = self._connections.get(address)
        if self._closed or known is not None:  # meanwhile
            endpoint.close()
            if known is None:
                raise Closed("the client was closed")
            return known
        connection = self._connections[address] = AsyncConnection(endpoint, self._options, self.stats)
        return connection
