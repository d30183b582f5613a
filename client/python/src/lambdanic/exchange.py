# SPDX-License-Identifier: Apache-2.0
"""One attempt at a call: which packets to send, and what the packets that arrive mean. It does no I/O and reads no clock."""

from math import inf

from .errors import Busy, Error, ReplyTooLarge, RPCError, Stale, error_of
from .flight import Flight
from .packet import BadPacket, encode, packets, placement
from .wire import ASK_AFTER, FRAGMENT, Code, Flag, Header, Status, Type

BATCH = 64  # packets that are sent before the next look at what arrived
ACK_EVERY = 16  # packets of a request share an acknowledgement, whose bitmap covers 64


def deadline_us(wait: float) -> int:
    """A header's deadline for a call that ends after so many seconds. A call that is over gets the least value, as 0 means none."""
    return max(1, min(int(wait * 1e6), (1 << 32) - 1))


def _error_in(header: Header) -> RPCError:
    return error_of(header.code, header.message_len if header.code in (Code.TOO_LARGE, Code.LAMBDA_FAULT) else 0)


class Exchange:
    def __init__(
        self, now: float, head: Header, body: bytes, *, due: float | None, single: int, room: int, max_reply: int, once: bool,
    ) -> None:  # fmt: skip
        """due is when the caller gives up, None where progress decides, head is of the request's packets, single what one packet holds, room what a request of one packet is padded to."""
        count, self._fragment = packets(len(body), single)
        self.head = head._replace(count=count, message_len=len(body))
        self.room = room
        self._due = due
        self._body = memoryview(body)
        self._max_reply = max_reply

        self._up = Flight(count, once)  # the request's packets
        self._down = Flight(0, once)  # pulls of the reply; packet 0 needs no pull
        self._pulling = False
        self._acked = False  # an acknowledgement came: the server keeps the message, and answers it as a whole
        self._parted = False  # a response to a later packet came: the server answers each packet
        self._probed = False  # a later packet was sent again, to provoke such a response
        self._guessed = False  # pulling because that response did not come

        self.first: Header | None = None  # of the first response that arrived
        self._size = 0  # bytes per packet of the reply but the last
        self.reply = bytearray()
        self.finished = False
        self.error: Error | None = None
        self.told: RPCError | None = None  # why the server did not take a packet that will be sent again

        self._once = once
        self._silent = 0  # resends of the first unacknowledged packet since the last packet arrived
        self._asked = False  # asked the directory since the last packet arrived

        self._reached = 0  # packets of request and reply that are through
        self.moved = now  # when the last one got through
        self.resent = self.duplicates = self.malformed = 0

    def poll(self, now: float, out: list[bytes]) -> float:
        """Appends packets that are due to out, and says when to poll again if nothing arrives before."""
        if self.finished:
            return inf
        if self._due is not None:
            self.head = self.head._replace(deadline_us=deadline_us(self._due - now))
        flight = self._down if self._pulling else self._up
        flight.expire(now)
        for _ in range(BATCH):
            if not flight.sendable():
                return flight.expiry
            index, again = flight.pick(now)
            if again:
                self.resent += 1
                self._silent += index == flight.base
                self._probed = self._probed or index > 0
            out.append(self._pull_packet(index, again) if self._pulling else self._request_packet(index, again, not flight.sendable()))
        return now if flight.sendable() else flight.expiry

    def _request_packet(self, index: int, again: bool, last: bool) -> bytes:
        """last asks for an acknowledgement, because no more packets will be sent now."""
        payload = self._body[index * self._fragment : (index + 1) * self._fragment]
        flags, room = self.head.flags, self.room
        if self.head.count > 1:
            # The last packet is padded like the others, because any of them may complete the message and carry the reply.
            room = FRAGMENT
            if again or last or index % ACK_EVERY in (0, ACK_EVERY - 1):
                flags |= Flag.ACK_WANTED
        if again:
            flags |= Flag.RESEND
        return encode(self.head._replace(index=index, flags=flags, length=len(payload)), payload, room)

    def _pull_packet(self, index: int, again: bool) -> bytes:
        assert self.first is not None
        payload = self._body if self.head.count == 1 else b""
        flags = self.head.flags | (Flag.RESEND if again else 0)
        header = self.head._replace(
            type=Type.PULL, index=index, flags=flags, length=len(payload),
            count=self.first.count, revision=self.first.revision, message_len=self._size,
        )  # fmt: skip
        return encode(header, payload, self._size)

    def release(self, out: list[bytes]) -> None:
        """Appends the acknowledgement that lets the server forget message and reply, if it keeps them."""
        if self.head.count == 1 and (self.first is None or self.first.count == 1) and not self.head.flags & Flag.ONCE:
            return
        revision = self.first.revision if self.first else 0
        out.append(encode(self.head._replace(type=Type.ACK, flags=self.head.flags | Flag.DONE, revision=revision)))

    def receive(self, now: float, header: Header, payload: bytes) -> None:
        """Takes in a packet with this exchange's request ID."""
        self._silent, self._asked = 0, False
        if self.finished:
            self.duplicates += 1
        elif header.workload != self.head.workload:
            self.malformed += 1
        elif header.type == Type.ERROR:
            self._refused(header)
        elif header.type == Type.ACK:
            self._acknowledge(now, header, payload)
        elif header.type == Type.RESPONSE:
            self._respond(header, payload)
        else:
            self.malformed += 1
        # Progress counts upwards only, so that a server whose packets say nothing new cannot keep a call alive.
        reached = self._up.base + (self._down.base if self._pulling else 0)
        if reached > self._reached:
            self._reached, self.moved = reached, now

    def asks(self, refused: bool) -> bool:
        """Whether it is time to ask where the function is, which it is once per silence: its place refused a packet, or has been silent
        for too long. A packet that may be executed but once never goes elsewhere, as the silent place may have executed it, and a
        refusal does not say of which packet it is."""
        if self.finished or self._asked or self._once or self.head.flags & Flag.ONCE or not refused and self._silent < ASK_AFTER:
            return False
        self._asked = True
        return True

    def _refused(self, header: Header) -> None:
        if header.code == Code.STALE and self._guessed:  # wrong: there is nothing to pull
            self._pulling, self._parted = False, True
            return
        error = _error_in(header)
        if isinstance(error, Busy) and self.head.flags & Flag.ONCE:  # it did not run, so it is sent again after the growing resend interval
            self.told = error
            return
        self._fail(error)

    def distrust(self, header: Header) -> None:
        """Takes in a packet that is not tagged as it should be. It may be anybody's, so it changes nothing. But an error may be the server's,
        which does not know the key."""
        if header.type == Type.ERROR:
            self.told = _error_in(header)
        else:
            self.malformed += 1

    def _fail(self, error: Error) -> None:
        self.error, self.finished = error, True

    def _acknowledge(self, now: float, header: Header, payload: bytes) -> None:
        if len(payload) != 8 or header.index >= self.head.count or self.head.count == 1:
            self.malformed += 1
            return
        if self._pulling:
            self.duplicates += 1
            return
        self._acked = True
        if self.first is not None and not self._parted:
            self._pull(self.first)
            return
        base, bitmap = header.index & ~63, int.from_bytes(payload)
        for bit in range(64):
            if bitmap >> bit & 1:
                self._up.confirm(base + bit)
        self._up.grant(header.grant)
        if self._up.done:
            self._up.doubt(now)

    def _respond(self, header: Header, payload: bytes) -> None:
        if self._failed(header):
            self._end(header, payload)
            return
        try:
            offset, size = placement(header)
        except BadPacket:
            self.malformed += 1
            return
        if self.first is None:
            self._begin(header, size)
        if self.first is None or self._contradicts(self.first, header, size):
            return
        if not self._pulling and self._whole(header):
            if header.index != 0:
                self.malformed += 1
                return
            self.reply[: len(payload)] = payload
            self._pull(self.first)
            return
        self._take(header, offset, payload)
        if not self.finished and not self._pulling and not self._parted and self._probed:
            self._guessed = True
            self._pull(self.first)

    def _failed(self, header: Header) -> bool:
        """Whether the lambda failed on a packet of the request, or on the whole request, so that this is the whole answer.

        The answers to other packets no longer matter then.
        """
        if self.head.count == 1 or header.code == Status.OK or self._pulling and not self._guessed:
            return False
        return header.index < self.head.count and (header.message_len == header.length or not self._whole(header))

    def _end(self, header: Header, payload: bytes) -> None:
        """Takes the packet as the whole answer, in place of what arrived before."""
        self._begin(header._replace(index=0, count=1, message_len=len(payload)), len(payload))
        if self.error is None:
            self.reply[:] = payload
            self.finished = True

    def _begin(self, header: Header, size: int) -> None:
        """Takes header as the first response."""
        if header.index > 0 and header.count != self.head.count:
            self.malformed += 1
            return
        if header.message_len > self._max_reply:
            self._fail(ReplyTooLarge(f"reply of {header.message_len} bytes is too large: raise max_reply"))
            return
        self.first, self._size, self.reply = header, size, bytearray(header.message_len)

    def _contradicts(self, first: Header, header: Header, size: int) -> bool:
        """Whether the packet belongs to another answer than the one that began, maybe by another revision. The first one stands."""
        if size == self._size and (header.count, header.message_len, header.code, header.revision) == (
            first.count, first.message_len, first.code, first.revision,
        ):  # fmt: skip
            return False
        self.duplicates += 1
        if not self._pulling and header.revision != first.revision:
            self._fail(Stale(Code.STALE))  # in mode stream nobody will complete the first one
        return True

    def _take(self, header: Header, offset: int, payload: bytes) -> None:
        """Puts one packet of the reply where it belongs."""
        if self._guessed and header.index >= self._down.next:  # nobody pulled it: the guess was wrong
            self._pulling = False
        self._parted = self._parted or not self._pulling and header.index > 0
        flight = self._down if self._pulling else self._up
        if not flight.confirm(header.index):
            self.duplicates += 1
            return
        self.reply[offset : offset + len(payload)] = payload
        self.finished = flight.done
        if self._guessed and self._pulling:
            self._up.confirm(header.index)

    def _whole(self, header: Header) -> bool:
        """Whether a response certainly answers the request as a whole. If not, it may be one of a series, one for each packet.

        The two look alike where the reply has as many packets as the request, and what else arrives must decide: after an
        acknowledgement it is whole; after a response to a later packet, one of a series; and where a later packet was sent again and still
        packet 0 is all that comes back, a pull finds out.
        """
        count = self.head.count
        return not self._parted and (count == 1 or header.count != count or self._acked or bool(header.flags & Flag.DONE))

    def _pull(self, first: Header) -> None:
        """Goes on to fetch what is left of a reply whose first packet has arrived."""
        if not self._guessed:
            self._up.confirm_all()
        self._pulling = True
        if first.count == 1:
            self.finished = True
            return
        self._down = Flight(first.count, self._up.once, confirmed=1)
        if self._guessed:
            self._down.window = 1
