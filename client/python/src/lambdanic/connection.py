# SPDX-License-Identifier: Apache-2.0
"""What the clients for threads and for asyncio have in common: where calls go to, and how packets come and go."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from .arguments import text
from .endpoint import Endpoint, is_refusal, split_address
from .errors import DeadlineExceeded, Error, UnknownWorkload
from .gateway import Function, Gateway
from .session import Call, Options, Reply, Request, Session, Stats
from .tag import Key
from .wire import MAX_MESSAGE, PORT


class Connection:
    """A server and the calls in flight towards it."""

    def __init__(self, endpoint: Endpoint, options: Options, stats: Stats) -> None:
        self.endpoint = endpoint
        self.session = Session(endpoint.single, options, stats)

    def start(self, request: Request, workload: int, before: Call | None = None) -> Call:
        """Begins a call, which the next turn sends. before is the same call elsewhere, which was given up."""
        return self.session.start(request, workload, time.monotonic(), before)

    def cancel(self, call: Call) -> None:
        """Ends a call that nobody waits for any more."""
        self._post(self.session.cancel(call))

    def send(self) -> float:
        """Sends what is due. Returns when more will be, if nothing arrives before."""
        packets, wake = self.session.poll(time.monotonic())
        return wake if self._post(packets) else time.monotonic()

    def _post(self, packets: list[bytes]) -> bool:
        """Returns whether no error was found that calls should see."""
        error = self.endpoint.send(packets)
        if error is not None:
            self.session.network_said(error, time.monotonic(), refused=is_refusal(error))
        return error is None or not is_refusal(error)

    def receive(self) -> None:
        """Takes in what has arrived."""
        while (datagram := self.endpoint.receive()) is not None:
            now = time.monotonic()
            if isinstance(datagram, OSError):
                self.session.network_said(datagram, now, refused=True)
            else:
                self.session.receive(datagram, now)

    def close(self) -> None:
        self.session.close()
        self.endpoint.close()


C = TypeVar("C", bound=Connection)


@dataclass(frozen=True, slots=True)
class Way(Generic[C]):
    """A call under way, and its destination."""

    function: Function
    connection: C
    call: Call

    def elsewhere(self, function: Function | None) -> bool:
        """Whether the function is elsewhere than the call."""
        here = self.function
        return function is not None and (function.workload, function.address) != (here.workload, here.address)

    def late(self) -> bool:
        """Whether the call ended at its deadline."""
        error = self.call.error
        return isinstance(error, DeadlineExceeded) or error is not None and isinstance(error.__cause__, DeadlineExceeded)


class Bell:
    """Wakes whoever polls it, from any thread."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._far.setblocking(False)

    def fileno(self) -> int:
        return self._near.fileno()

    def ring(self) -> None:
        with suppress(OSError):  # it is woken already, or nobody polls any more
            self._far.send(b"!")

    def hush(self) -> None:
        self._near.recv(4096)

    def close(self) -> None:
        self._near.close()
        self._far.close()


class Base(Generic[C]):
    def __init__(
        self, address: str | None = None, *, gateway: str | None = None, credentials: str | None = None, namespace: str | None = None,
        timeout: float = 5.0, reply_room: int = 512, max_reply: int = MAX_MESSAGE, resend: bool = True, key: str | None = None,
        tag_payload: bool = True,
    ) -> None:  # fmt: skip
        """address is where workload IDs are called: HOST, HOST:PORT or [IPv6]:PORT. gateway is who knows functions by their names:
        unix:PATH, HOST:PORT, [IPv6]:PORT or its URL, with "USER:PASSWORD" as credentials where it asks for some. Nothing is sent yet.

        A call without a deadline fails after timeout seconds without progress. Methods that were never called before get reply_room
        bytes for their replies. Replies longer than max_reply bytes are refused. Without resend, every packet is sent once.

        With a key of the functions' namespace, as `lambdanic namespace key add` writes it, all packets are tagged, and only answers that are
        tagged by it are taken. An error without a tag may be anybody's, so it ends no call: it is raised at the deadline. Without
        tag_payload, tags are over headers alone: they take less time, but payloads can be changed on the way.
        """
        if address is None and gateway is None:
            raise ValueError("give the address of a server or of a gateway")
        if address is not None:
            text("address", address)
            split_address(address, PORT)
        self._options = Options(timeout, reply_room, max_reply, resend, None if key is None else Key.parse(key), tag_payload)
        self.stats = Stats()
        self._address = address
        self._gateway = Gateway(gateway, credentials=credentials, namespace=namespace, timeout=timeout) if gateway is not None else None
        self._connections: dict[str, C] = {}
        self._asking: dict[str, list[Callable[[Function | None], None]]] = {}  # for functions, and who wants to know
        self._asking_lock = threading.Lock()
        self._closed = False
        self._lock = threading.Lock()  # of those who have several threads

    def _known(self, request: Request) -> Function | None:
        """Where a request goes, if that is known without asking."""
        if isinstance(request.function, str) and self._gateway is not None:
            return self._gateway.known(request.function)
        return self._find(request, None)

    def _check(self, request: Request) -> Request:
        """Refuses what this client cannot call, before any call of the same batch has begun."""
        if not isinstance(request, Request):
            raise TypeError(f"{request!r} is no Request")
        if isinstance(request.function, str) and self._gateway is None:
            raise ValueError(f"call {request.function!r}: names need a gateway: give its address to the client, or call a workload ID")
        if isinstance(request.function, int) and self._address is None:
            raise ValueError(f"call workload {request.function}: workload IDs need an address: give it to the client, or call a name")
        return request

    def _find(self, request: Request, stale: Function | None) -> Function:
        """Where a request goes. stale is an address that was wrong."""
        if isinstance(request.function, str):
            assert self._gateway is not None  # as checked
            return self._gateway.find(request.function, stale)
        assert self._address is not None
        return Function("", request.function, 0, self._address)

    def _ask(self, stale: Function, tell: Callable[[Function | None], None]) -> None:
        """Asks where a function is by now. tell is called from another thread, so that a call goes on meanwhile; with None where the
        gateway does not say. Those who ask meanwhile are told the same."""
        with self._asking_lock:
            waiting = self._asking.get(stale.name)
            if waiting is not None:
                waiting.append(tell)
                return
            self._asking[stale.name] = [tell]
        threading.Thread(target=self._answer, args=(stale,), daemon=True).start()

    def _answer(self, stale: Function) -> None:
        assert self._gateway is not None  # only a gateway can have said where the function was
        function = None
        with suppress(Error):
            function = self._gateway.find(stale.name, stale)
        with self._asking_lock:
            waiting = self._asking.pop(stale.name)
        for tell in waiting:
            tell(function)

    def _moved(self, way: Way[C]) -> bool:
        """Whether a call was made where the function is not any more, so that it is to be made again, unless its time is over."""
        return bool(way.function.name) and isinstance(way.call.error, UnknownWorkload) and not way.late()

    def _outcome(self, way: Way[C]) -> Reply | Error:
        """The result of a call. After a call without an answer, the next one asks whether the function has moved."""
        if way.late() and self._gateway is not None:
            self._gateway.forget(way.function)
        return way.call.outcome()
