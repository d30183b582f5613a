# SPDX-License-Identifier: Apache-2.0
"""Ikernels for an application's own UDP sockets: accelerators in the NIC that get a socket's datagrams before the application does."""

import errno
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from struct import Struct
from types import TracebackType
from typing import NamedTuple, Self

from .arguments import MAX_UINT32, flag, text, whole
from .errors import IkernelError, IkernelFault, RegisterDiffers
from .fault import Watch
from .ikernel_wire import (
    HEADER_LEN,
    MAX_NAME,
    MAX_PACKET,
    MAX_REGISTERS,
    MAX_RINGS,
    REGISTER_LEN,
    RINGS_POLLED,
    Operation,
)
from .notes import Notes
from .ring import Ring, RingCounts

IKERNEL_SOCKET = "/run/lambdanic/default/ikernel.sock"  # where the daemon of this machine serves applications

_HEAD = Struct("=II")  # a request's operation, or a reply's errno; the ikernel
_SIGNED = Struct("=I")
_TRANSACTION = Struct(f"=QQ{2 * MAX_REGISTERS}Q")  # which registers are expected and written, the values expected, the values to write
_RINGS = Struct("=III")  # how many, the bytes of each, flags
_COUNTS = Struct("=QQ")
_NUMBER = Struct("=I")
_MASK = (1 << 64) - 1


class _Reply(NamedTuple):
    ikernel: int
    body: bytes
    descriptors: list[int]


class Ikernels:
    """An application's connection to the daemon of this machine. Its ikernels end with it, and so with the application. Threads may
    share it; a child that was forked makes its own."""

    def __init__(self, path: str = IKERNEL_SOCKET) -> None:
        text("path", path)
        self._lock = threading.Lock()
        self._memory: dict[int, ExitStack] = {}  # what closes the rings and notes of each ikernel
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(None)  # whatever the default is: the daemon answers, or is gone
        try:
            self._socket.connect(path)
        except OSError as e:
            self._socket.close()
            raise IkernelError(f"connect to the daemon: {e}: start it with `lambdanic up -d`, and ask as root", e.errno) from e

    def close(self) -> None:
        """Ends all ikernels of the connection, and their rings and notes. Their sockets get all of their datagrams again."""
        self._socket.close()
        while self._memory:
            self._memory.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def create(self, name: str, namespace: str = "") -> "Ikernel":
        """Makes an ikernel that has no socket yet. With a namespace, which has to be there, it is kept in its share and quotas, and charged
        to it; then it takes UDP sockets alone."""
        text("name", name)
        text("namespace", namespace)
        reply = self._exchange(Operation.CREATE, 0, (f"{name}\0{namespace}" if namespace else name).encode())
        return Ikernel(self, reply.ikernel, reply.body)

    def _exchange(self, operation: Operation, ikernel: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> _Reply:
        """Sends a request, and returns its reply."""
        try:
            with self._lock:
                try:
                    socket.send_fds(self._socket, [_HEAD.pack(operation, ikernel), body], descriptors)
                    reply, given, flags, _ = socket.recv_fds(self._socket, MAX_PACKET, MAX_RINGS, socket.MSG_CMSG_CLOEXEC)
                except BaseException:  # such as a signal's: the next request would get this one's reply
                    self._socket.close()
                    raise
        except OSError as e:
            raise IkernelError(f"ask the daemon: {e}: is it still running? See `lambdanic list`", e.errno) from e
        try:
            _check(reply, flags)
        except IkernelError:
            _close(given)
            raise
        return _Reply(_HEAD.unpack_from(reply)[1], reply[HEADER_LEN:], given)

    def _keep(self, ikernel: int, memory: Ring | Notes | Watch) -> None:
        """Has memory end with the ikernel."""
        self._memory.setdefault(ikernel, ExitStack()).enter_context(closing(memory))

    def _end(self, ikernel: int) -> None:
        self._memory.pop(ikernel, ExitStack()).close()


def _check(reply: bytes, flags: int) -> None:
    """Raises what the daemon says, if it is an error."""
    if len(reply) < HEADER_LEN:
        raise IkernelError(f"ask the daemon: its reply has {len(reply)} bytes: is it still running? See `lambdanic list`", None)
    code, _ = _HEAD.unpack_from(reply)
    if code == errno.EAGAIN:
        raise RegisterDiffers("a register has another value than the transaction expects", code)
    if code == errno.EIO:
        raise IkernelFault(reply[HEADER_LEN:].decode(errors="replace"))
    if code != 0:
        raise IkernelError(reply[HEADER_LEN:].decode(errors="replace"), code)
    if flags & socket.MSG_CTRUNC:
        raise IkernelError("open what the daemon gives: too many open files: raise the limit", errno.EMFILE)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Ikernel:
    """Serves sockets that are attached to it, before the application does."""

    def __init__(self, ikernels: Ikernels, number: int, registers: bytes) -> None:
        self._ikernels = ikernels
        self._number = number
        self._signed: dict[str, bool] = {}  # in the order of the registers
        for at in range(0, len(registers), REGISTER_LEN):
            name = registers[at + REGISTER_LEN - MAX_NAME : at + REGISTER_LEN].rstrip(b"\0").decode()
            self._signed[name] = _SIGNED.unpack_from(registers, at)[0] != 0
        self._names = list(self._signed)
        self._watch: Watch | None = None  # of its fault, if anybody waits for it

    def destroy(self) -> None:
        """Ends the ikernel, its rings and notes, and forgets its registers."""
        try:
            self._ikernels._exchange(Operation.DESTROY, self._number)
        finally:
            self._ikernels._end(self._number)

    def attach(self, sock: socket.socket) -> None:
        """Has the ikernel get the datagrams to a UDP socket that is bound, before the socket does. That ends when the socket closes.
        threshold takes TCP sockets that are connected and do not block, or listen, too."""
        self._ikernels._exchange(Operation.ATTACH, self._number, descriptors=(sock.fileno(),))

    def detach(self, sock: socket.socket) -> None:
        """Has a socket get its datagrams again. The ikernel keeps its registers."""
        self._ikernels._exchange(Operation.DETACH, self._number, descriptors=(sock.fileno(),))

    def read(self) -> dict[str, int]:
        """All registers, as they are at one moment."""
        return self.transact({}, {})

    def write(self, **values: int) -> None:
        """Writes registers in one step."""
        self.transact({}, values)

    def transact(self, expect: Mapping[str, int], write: Mapping[str, int]) -> dict[str, int]:
        """Returns all registers and writes some in the same step, if others have the values that are expected; or else raises
        RegisterDiffers."""
        expected, values = self._place(expect), self._place(write)
        masks = (sum(1 << self._names.index(name) for name in names) for names in (expect, write))
        reply = self._ikernels._exchange(Operation.TRANSACT, self._number, _TRANSACTION.pack(*masks, *expected, *values))
        words = Struct(f"={len(self._names)}Q").unpack_from(reply.body)
        return {name: _signed(word) if self._signed[name] else word for name, word in zip(self._names, words, strict=True)}

    @property
    def fault(self) -> IkernelFault | None:
        """Why the ikernel gave up; None: it has not."""
        return self._watched().look()

    def wait_fault(self, timeout: float | None = None) -> IkernelFault | None:
        """Waits until the ikernel gives up; None: it has not after a number of seconds."""
        return self._watched().wait(timeout)

    def fault_fileno(self) -> int:
        """For event loops: it is readable when there is a fault."""
        return self._watched().fileno()

    def _watched(self) -> Watch:
        if self._watch is None:
            given = self._ikernels._exchange(Operation.FAULT, self._number).descriptors
            self._watch = Watch(given[0])
            self._ikernels._keep(self._number, self._watch)
        return self._watch

    def open_rings(self, *, count: int, size: int, polled: bool = False) -> list[Ring]:
        """Has the ikernel send messages by rings, once: how many, such as one for each CPU, and how many bytes each has, a power of two of
        one page at least. With polled, the ikernel wakes nobody, which costs it time: the application uses poll alone."""
        whole("count", count, MAX_UINT32)
        whole("size", size, MAX_UINT32)
        flag("polled", polled)
        request = _RINGS.pack(count, size, RINGS_POLLED if polled else 0)
        given = self._ikernels._exchange(Operation.RINGS, self._number, request).descriptors
        watch = self._watch_for(given, polled)
        rings: list[Ring] = []
        try:
            while given:
                rings.append(Ring(given.pop(0), size, watch))
        except OSError as e:
            _close(given)
            for ring in rings:
                ring.close()
            raise IkernelError(f"open ring {len(rings)}: {e}: destroy the ikernel", e.errno) from e
        for ring in rings:
            self._ikernels._keep(self._number, ring)
        return rings

    def _watch_for(self, rings: list[int], polled: bool) -> Watch | None:
        """What readers of rings watch; None: nobody waits for them."""
        try:
            return None if polled else self._watched()
        except IkernelError:
            _close(rings)
            raise

    def ring_counts(self) -> list[RingCounts]:
        """The counts of each ring's messages."""
        body = self._ikernels._exchange(Operation.RING_COUNTS, self._number).body
        return [RingCounts(*counts) for counts in _COUNTS.iter_unpack(body)]

    def open_notes(self) -> Notes:
        """Lets the application write notes, once, to an ikernel that takes some."""
        _, body, given = self._ikernels._exchange(Operation.NOTES, self._number)
        try:
            notes = Notes(given[0], _NUMBER.unpack(body)[0], self._deliver)
        except OSError as e:
            raise IkernelError(f"map the memory for notes: {e}", e.errno) from e
        finally:
            _close(given)
        self._ikernels._keep(self._number, notes)
        return notes

    def _deliver(self) -> int:
        reply = self._ikernels._exchange(Operation.DELIVER, self._number)
        return int(_NUMBER.unpack(reply.body)[0])

    def _place(self, values: Mapping[str, int]) -> list[int]:
        """The values where their registers are."""
        words = [0] * MAX_REGISTERS
        for name, value in values.items():
            if name not in self._signed:
                raise ValueError(f"the ikernel has no register {name!r}: use {', '.join(self._names)}")
            if not isinstance(value, int):
                raise TypeError(f"register {name} is a number, not {value!r}")
            least = -1 << 63 if self._signed[name] else 0
            if not least <= value <= least + _MASK:
                raise ValueError(f"register {name} has 64 bits: {value} is out of range")
            words[self._names.index(name)] = value & _MASK
        return words


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
