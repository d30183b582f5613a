# SPDX-License-Identifier: Apache-2.0
"""Messages that ikernels send by rings, which the application reads in place."""

import mmap
import os
import select
import socket
import time
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from .errors import Closed, DeadlineExceeded
from .fault import Watch
from .ikernel_wire import RING_HEAD_LEN
from .mapping import HEAD_LEN, Mapping, fence, record_len

_BUSY = 1 << 31  # BPF_RINGBUF_BUSY_BIT: a record that is not finished
_DISCARDED = 1 << 30  # BPF_RINGBUF_DISCARD_BIT: and one that never is
_TIME = Struct("=Q")
_PORT = Struct("!H")


class RingCounts(NamedTuple):
    """A ring's messages."""

    posted: int
    refused: int  # the ring was full, or the message longer than it


class Message:
    """What an ikernel sends of a datagram. data is in the ring: the next read, poll, release or close ends it."""

    __slots__ = ("_head", "data")

    def __init__(self, head: bytes, data: memoryview) -> None:
        self._head = head
        self.data = data

    @property
    def time(self) -> int:
        """When it was posted, in ns, as time.monotonic_ns() has it."""
        return int(_TIME.unpack_from(self._head)[0])

    @property
    def sender(self) -> tuple[str, int]:
        """The address of its datagram's sender, as for sendto."""
        return self._address(8, 40)

    @property
    def receiver(self) -> tuple[str, int]:
        """The address at which the datagram came."""
        return self._address(24, 42)

    def _address(self, at: int, port: int) -> tuple[str, int]:
        family, size = (socket.AF_INET6, 16) if self._head[44] else (socket.AF_INET, 4)
        return socket.inet_ntop(family, self._head[at : at + size]), _PORT.unpack_from(self._head, port)[0]


class Ring:
    """Messages from an ikernel. One thread reads and closes a ring. An event loop may wait for it, as for a socket, and then polls until
    there is no message."""

    def __init__(self, descriptor: int, size: int, watch: Watch | None) -> None:
        self._descriptor = descriptor
        self._watch = watch  # None: the ring is polled
        self._mask = size - 1
        self._at = 0  # what the position becomes when the message in use is released
        self._data: memoryview | None = None
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLIN)
        if watch is not None:
            self._ready.register(watch, select.POLLIN)
        self._memory: Mapping | None = None
        try:
            self._memory = Mapping(descriptor, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Ends the ring. What the ikernel posts to it from then on is lost, or refused when it is full."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        if self._data is not None:
            self._data.release()
        if self._memory is not None:
            self._memory.close()
        self._data = self._memory = None

    def fileno(self) -> int:
        """For event loops: it is readable when there are messages, unless the ring is polled."""
        return self._descriptor

    def poll(self) -> Message | None:
        """The next message, if there is one already. It releases the one before."""
        self.release()
        return self._next()

    def read(self, timeout: float | None = None) -> Message:
        """Waits for the next message, and releases the one before. It raises DeadlineExceeded after a number of seconds, if one is given.
        When no message is left, it raises IkernelFault if the ikernel gave up, and IkernelError if the daemon ended."""
        if self._watch is None:
            raise ValueError("the ring is polled: use poll, or open it without polled")
        message = self.poll()
        if message is not None:
            return message
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            ready = self._ready.poll(None if left is None else left * 1000)
            message = self._next()
            if message is not None:
                return message
            if any(descriptor != self._descriptor for descriptor, _ in ready) and (fault := self._watch.look()):
                raise fault
            if left == 0:
                raise DeadlineExceeded("no message in time")

    def __iter__(self) -> Iterator[Message]:
        """All messages, as they come."""
        while True:
            yield self.read()

    def release(self) -> None:
        """Gives the last message's place to the ikernel. read and poll do so, too."""
        memory = self._mapped()
        if self._data is not None:
            self._data.release()
            self._data = None
        self._advance(memory)

    def _advance(self, memory: Mapping) -> None:
        """Either _next sees a message that comes now, or the kernel sees that its reader has none, and wakes it."""
        fence()  # what was read of the message
        memory.first[0] = self._at
        fence()

    def _next(self) -> Message | None:
        memory = self._mapped()
        while self._at != memory.second[0]:
            fence()
            begin = self._at & self._mask
            length = memory.lengths[begin // memory.lengths.itemsize]
            if length & _BUSY:
                return None
            fence()
            end = self._at + record_len(length & ~_DISCARDED)
            if not length & _DISCARDED:
                begin += HEAD_LEN
                data = begin + RING_HEAD_LEN
                self._data = memory.bytes[data : begin + length]
                message = Message(bytes(memory.bytes[begin:data]), self._data)
                self._at = end  # last, as a signal's handler may raise
                return message
            self._at = end
            self._advance(memory)
        return None

    def _mapped(self) -> Mapping:
        if self._memory is None:
            raise Closed("the ring was closed")
        return self._memory
