# SPDX-License-Identifier: Apache-2.0
"""A server and a bad network in memory, with a clock of their own, after docs/protocol.md."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from lambdanic.packet import encode, parse, placement
from lambdanic.session import Call, Options, Request, Session, Stats
from lambdanic.wire import HEADER_LEN, MAX_PAYLOAD, Code, Flag, Header, Type

REVISION = 7


@dataclass
class Record:
    body: bytearray
    missing: set[int]


@dataclass
class Server:
    """Answers whole messages, which it keeps until they are released."""

    handle: Callable[[bytes], bytes] = lambda body: body
    refuse: Callable[[Header], tuple[int, int]] = lambda header: (0, 0)
    records: dict[int, Record] = field(default_factory=dict)
    runs: int = 0

    def answer(self, datagram: bytes) -> bytes | None:
        header, payload = parse(datagram)
        room = len(datagram) - HEADER_LEN
        code, need = self.refuse(header)
        if code:
            return encode(header._replace(type=Type.ERROR, code=code, length=0, index=0, count=1, message_len=need))
        if header.type == Type.ACK:
            self.records.pop(header.request, None)
            return None
        if header.type == Type.PULL:
            if header.count == 1 or header.message_len > room or header.index >= header.count:
                return encode(header._replace(type=Type.ERROR, code=Code.MALFORMED, length=0, index=0, count=1))
            body = payload if header.request not in self.records else bytes(self.records[header.request].body)
            return self._window(header, self.handle(body), header.index, header.message_len)
        return self._request(header, payload, room)

    def _request(self, header: Header, payload: bytes, room: int) -> bytes | None:
        offset, _ = placement(header)
        if header.count == 1:
            self.runs += 1
            return self._window(header, self.handle(payload), 0, room)
        record = self.records.get(header.request)
        if record is None:
            record = self.records[header.request] = Record(bytearray(header.message_len), set(range(header.count)))
        complete = not record.missing
        record.body[offset : offset + len(payload)] = payload
        record.missing.discard(header.index)
        if record.missing:
            return self._acknowledge(header, record) if header.flags & Flag.ACK_WANTED else None
        self.runs += not complete
        return self._window(header, self.handle(bytes(record.body)), 0, room)

    def _acknowledge(self, header: Header, record: Record) -> bytes:
        base = header.index & ~63
        bitmap = sum(1 << i for i in range(64) if base + i < header.count and base + i not in record.missing)
        return encode(header._replace(type=Type.ACK, flags=0, length=8, revision=REVISION), bitmap.to_bytes(8))

    def _window(self, header: Header, reply: bytes, index: int, size: int) -> bytes:
        count = max(1, -(-len(reply) // size)) if size else 1
        part = reply[index * size : (index + 1) * size]
        header = header._replace(type=Type.RESPONSE, flags=0, code=0, revision=REVISION, index=index, count=count)
        return encode(header._replace(length=len(part), message_len=len(reply)), part)


class Network:
    """Carries datagrams between a session and a server within a delay, or never: with the probability loss. Where some are lost, the
    others come in disorder."""

    def __init__(
        self, server: Server, seed: int, loss: float = 0.0, twice: float = 0.0, delay: float = 0.002,
        options: Options | None = None,
    ) -> None:  # fmt: skip
        self.server = server
        self.stats = Stats()
        self.session = Session(MAX_PAYLOAD, options or Options(), self.stats)
        self.now = 0.0
        self.sent: list[bytes] = []
        self._random = random.Random(seed)
        self._loss, self._twice, self._delay = loss, twice, delay
        self._under_way: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def call(self, *requests: Request) -> list[Call]:
        """Makes calls at once, and advances the clock until all are done."""
        calls = [self.session.start(request, 1, self.now) for request in requests]
        while True:
            packets, wake = self.session.poll(self.now)
            self.sent += packets
            for packet in packets:
                self._carry(lambda packet=packet: self._arrive(packet))  # type: ignore[misc]
            if all(call.done for call in calls) and not self._under_way:
                return calls
            if not self._under_way or wake < self._under_way[0][0]:
                self.now = max(self.now, wake)
                continue
            self.now, _, deliver = heapq.heappop(self._under_way)
            deliver()

    def _arrive(self, packet: bytes) -> None:
        answer = self.server.answer(packet)
        if answer is not None:
            self._carry(lambda: self.session.receive(answer, self.now))

    def _carry(self, deliver: Callable[[], None]) -> None:
        for _ in range(1 + (self._random.random() < self._twice)):
            if self._random.random() >= self._loss:
                self._count += 1
                delay = self._delay * (self._random.uniform(0.5, 1.5) if self._loss else 1)
                heapq.heappush(self._under_way, (self.now + delay, self._count, deliver))
