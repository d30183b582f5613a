# SPDX-License-Identifier: Apache-2.0
"""The calls in flight towards one server: their attempts, deadlines and turns. It does no I/O and reads no clock."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from .arguments import MAX_UINT32, bytes_of, flag, seconds, text, whole
from .errors import Closed, DeadlineExceeded, Error, RequestTooLarge, Stale, TooLarge
from .exchange import Exchange, deadline_us
from .packet import BadPacket, NotRPC, parse
from .tag import Key, Tagger
from .wire import MAX_MESSAGE, Flag, Header, Type

_MAX_ATTEMPTS = 8  # how often a call starts over because its revision went away while it ran
_MAX_ROOMS = 4096  # bounds the memory of a client that uses ever new methods


@dataclass(frozen=True, slots=True)
class Options:
    """timeout: seconds without progress after which a call without a deadline fails. reply_room: bytes for replies of methods that were
    never called before. max_reply: longer replies are refused. resend: without it, every packet is sent once. key: packets are tagged by it,
    with tag_payload over their payloads as well."""

    timeout: float = 5.0
    reply_room: int = 512
    max_reply: int = MAX_MESSAGE
    resend: bool = True
    key: Key | None = None
    tag_payload: bool = True

    def __post_init__(self) -> None:
        seconds("timeout", self.timeout)
        whole("reply_room", self.reply_room, MAX_MESSAGE)
        whole("max_reply", self.max_reply, MAX_MESSAGE)
        flag("resend", self.resend)
        flag("tag_payload", self.tag_payload)


@dataclass(frozen=True, slots=True)
class Request:
    """One call. function is a workload ID or, where the client knows a gateway, a name. deadline is in seconds for the whole call.

    A bad argument raises TypeError or ValueError at once.

    reply_room is how long a reply is expected: so many bytes come back in one packet. 0 is what earlier replies to the same method took. A
    longer reply arrives too, in more packets.

    once asks the server to execute the request at most once while it remembers it: what is sent again is answered from memory. The reply to
    a request of one packet then has to fit one packet, and the call never starts over: Stale and TooLarge are final, as is
    DeadlineExceeded, after which nobody knows.
    """

    function: int | str
    body: bytes = b""
    method: int = 0
    deadline: float | None = None
    reply_room: int = 0
    once: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.function, str):
            text("function", self.function)
            if not self.function:
                raise ValueError("the function's name is empty: give a name or a workload ID")
        else:
            whole("function", self.function, MAX_UINT32)
        object.__setattr__(self, "body", bytes_of(self.body))
        whole("method", self.method, MAX_UINT32)
        if self.deadline is not None:
            seconds("deadline", self.deadline)
        whole("reply_room", self.reply_room, MAX_MESSAGE)
        flag("once", self.once)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a lambda answered. status is its own verdict, a Status where it keeps to those; resends counts packets sent again."""

    body: bytes
    status: int
    revision: int
    resends: int


@dataclass(slots=True)
class Stats:
    """The counters of a client. Packets from other addresses than the server's never reach it: the kernel refuses them."""

    calls: int = 0  # attempts
    restarts: int = 0  # attempts beyond a call's first
    sent: int = 0  # packets
    resent: int = 0  # packets sent again
    received: int = 0  # packets
    duplicates: int = 0  # packets that said nothing new
    stray: int = 0  # packets for no call in flight: late, or forged
    malformed: int = 0  # packets that are not λ-RPC, or contradict themselves or their call


class Call:
    """A request on its way. Once done, it has a reply or an error, and on_done was called."""

    def __init__(self, request: Request, workload: int, room: int, now: float, timeout: float) -> None:
        self.request = request
        self.workload = workload
        self.reply: Reply | None = None
        self.error: Error | None = None
        self.done = False
        self.on_done: Callable[[Call], None] | None = None
        self.on_silent: Callable[[], None] | None = None  # where it is time to ask where the function is

        self._room = room
        self._started = now
        self._deadline = now + timeout
        self._wake = inf
        self._attempt = 0
        self._resends = 0
        self._refused = False  # the network refused a packet, and the refusal is not yet handled
        self._exchange: Exchange

    def outcome(self) -> Reply | Error:
        """The reply or the error of a call that is done."""
        outcome = self.reply or self.error
        assert outcome is not None
        return outcome


class Session:
    def __init__(self, single: int, options: Options, stats: Stats) -> None:
        """single is how many bytes of message fit one packet."""
        self._single = single
        self._options = options
        self._stats = stats
        self._tagger = Tagger(options.key, options.tag_payload) if options.key is not None else None
        self._id = secrets.randbits(64)  # a random start: others cannot guess it, and IDs of earlier sessions are not repeated
        self._calls: dict[int, Call] = {}  # by request ID
        self._ready: dict[Call, None] = {}  # have to be polled now
        self._wake = inf  # all other calls need no poll before
        self._rooms: dict[tuple[int, int], int] = {}  # how long the replies of a method were
        self._said: OSError | None = None  # by the network, and when
        self._said_at = -inf

    def start(self, request: Request, workload: int, now: float, before: Call | None = None) -> Call:
        """Begins a call; the next poll returns its packets. A call that was made elsewhere before has the time that it had left."""
        if len(request.body) > MAX_MESSAGE:
            raise RequestTooLarge(f"request of {len(request.body)} bytes exceeds {MAX_MESSAGE}: split it")
        timeout = self._options.timeout if request.deadline is None else request.deadline
        call = Call(request, workload, self._room_for(request, workload), now, timeout)
        if before is not None:
            call._started, call._deadline, call._resends = before._started, before._deadline, before._resends
        self._begin(call, now)
        if before is not None:
            call._exchange.moved = before._exchange.moved
        return call

    def cancel(self, call: Call) -> list[bytes]:
        """Ends a call that nobody waits for any more. Returns the packets that tell the server."""
        out: list[bytes] = []
        if not call.done:
            call._exchange.release(out)
            self._forget(call)
            self._account(call)
            self._end(call, Closed("the call was cancelled"))
        return self._tag(out)

    def close(self) -> None:
        """Ends all calls."""
        for call in list(self._calls.values()):
            self._forget(call)
            self._end(call, Closed("the client was closed"))

    def network_said(self, error: OSError, now: float, *, refused: bool = False) -> None:
        """Notes an error for calls that may end, or have to go elsewhere, because of it."""
        self._said, self._said_at = error, now
        if refused:
            for call in self._calls.values():
                call._refused = True
                self._ready[call] = None

    def receive(self, datagram: bytes, now: float) -> None:
        """Takes in a datagram; the next poll acts on it."""
        self._stats.received += 1
        try:
            header, payload = parse(datagram)
        except (NotRPC, BadPacket):
            self._stats.malformed += 1
            return
        call = self._calls.get(header.request)
        if call is None:
            self._stats.stray += 1
            return
        if self._tagger is not None and not self._tagger.accepts(header, datagram):
            call._exchange.distrust(header)
        else:
            call._exchange.receive(now, header, payload)
        self._ready[call] = None

    def poll(self, now: float) -> tuple[list[bytes], float]:
        """Ends calls that are over. Returns the packets that are due, and when to poll again if nothing arrives before."""
        if now >= self._wake:
            self._wake = inf
            for call in self._calls.values():
                if call._wake <= now:
                    self._ready[call] = None
                else:
                    self._wake = min(self._wake, call._wake)
        ready, self._ready = self._ready, {}
        out: list[bytes] = []
        for call in ready:
            self._poll_call(call, now, out)
        self._stats.sent += len(out)
        return self._tag(out), now if self._ready else self._wake

    def _tag(self, packets: list[bytes]) -> list[bytes]:
        tagger = self._tagger
        return packets if tagger is None else [tagger.tag(packet) for packet in packets]

    def _poll_call(self, call: Call, now: float, out: list[bytes]) -> None:
        exchange = call._exchange
        if not exchange.finished:
            if call.request.deadline is None:
                call._deadline = exchange.moved + self._options.timeout
            if now < call._deadline:
                call._wake = min(exchange.poll(now, out), call._deadline)
                self._wake = min(self._wake, call._wake)
                refused, call._refused = call._refused, False
                if call.on_silent is not None and exchange.asks(refused):
                    call.on_silent()
                return
            exchange.error = self._too_late(call)
        exchange.release(out)
        self._forget(call)
        self._account(call)
        if exchange.finished and self._starts_over(call, exchange.error):
            self._stats.restarts += 1
            self._begin(call, now)
        else:
            self._end(call, exchange.error)

    def _begin(self, call: Call, now: float) -> None:
        """Begins an attempt at a call, with a request ID of its own."""
        self._id = (self._id + 1) % (1 << 64)
        flags = Flag.ONCE if call.request.once else 0
        head = Header(
            type=Type.REQUEST, flags=flags, workload=call.workload, request=self._id, method=call.request.method,
            deadline_us=deadline_us(call._deadline - now),
        )  # fmt: skip
        options = self._options
        call._exchange = Exchange(
            now, head, call.request.body, due=None if call.request.deadline is None else call._deadline, single=self._single, room=call._room, max_reply=options.max_reply, once=not options.resend,
        )  # fmt: skip
        call._attempt += 1
        self._calls[self._id] = call
        self._ready[call] = None
        self._stats.calls += 1

    def _starts_over(self, call: Call, error: Error | None) -> bool:
        """Whether a call that ended with an error is tried again."""
        if call._attempt > _MAX_ATTEMPTS or call.request.once:
            return False
        if isinstance(error, TooLarge) and call._exchange.head.count == 1 and call._room < error.need <= self._single:
            call._room = error.need
            return True
        return isinstance(error, Stale)

    def _end(self, call: Call, error: Error | None) -> None:
        exchange, first = call._exchange, call._exchange.first
        if error is None and first is not None:
            self._learn(call, first.message_len)
            call.reply = Reply(bytes(exchange.reply), first.code, first.revision, call._resends)
        call.error, call.done = error, True
        if call.on_done is not None:
            call.on_done(call)

    def _forget(self, call: Call) -> None:
        del self._calls[call._exchange.head.request]
        self._ready.pop(call, None)

    def _account(self, call: Call) -> None:
        exchange, stats = call._exchange, self._stats
        call._resends += exchange.resent
        stats.resent += exchange.resent
        stats.duplicates += exchange.duplicates
        stats.malformed += exchange.malformed

    def _too_late(self, call: Call) -> Error:
        """What the server said last or, if it said nothing, that no answer came."""
        error = DeadlineExceeded()
        if self._said_at >= call._started:
            error.__cause__ = self._said
        told = call._exchange.told
        if told is None:
            return error
        told.__cause__ = error
        return told

    def _room_for(self, request: Request, workload: int) -> int:
        if request.once:
            return self._single  # a longer reply would make the lambda run again
        room = request.reply_room or max(self._rooms.get((workload, request.method), 0), self._options.reply_room)
        return min(room, self._single)

    def _learn(self, call: Call, length: int) -> None:
        if call.request.reply_room or length <= self._options.reply_room:
            return
        if len(self._rooms) >= _MAX_ROOMS:
            self._rooms.clear()
        method = (call.workload, call.request.method)
        self._rooms[method] = max(self._rooms.get(method, 0), min(length, self._single))
