# SPDX-License-Identifier: Apache-2.0
"""Ikernels for an application's own UDP sockets: accelerators in the NIC that get a socket's datagrams before the application does."""

import errno
import socket
import threading
from collections.abc import Mapping
from struct import Struct
from types import TracebackType
from typing import Self

from .arguments import text
from .errors import IkernelError, RegisterDiffers
from .ikernel_wire import HEADER_LEN, MAX_NAME, MAX_PACKET, MAX_REGISTERS, REGISTER_LEN, Operation

IKERNEL_SOCKET = "/run/lambdanic/default/ikernel.sock"  # where the daemon of this machine serves applications

_HEAD = Struct("=II")  # a request's operation, or a reply's errno; the ikernel
_SIGNED = Struct("=I")
_TRANSACTION = Struct(f"=QQ{2 * MAX_REGISTERS}Q")  # which registers are expected and written, the values expected, the values to write
_MASK = (1 << 64) - 1


class Ikernels:
    """An application's connection to the daemon of this machine. Its ikernels end with it, and so with the application. Threads may
    share it; a child that was forked makes its own."""

    def __init__(self, path: str = IKERNEL_SOCKET) -> None:
        text("path", path)
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(None)  # whatever the default is: the daemon answers, or is gone
        try:
            self._socket.connect(path)
        except OSError as e:
            self._socket.close()
            raise IkernelError(f"connect to the daemon: {e}: start it with `lambdanic up -d`", e.errno) from e

    def close(self) -> None:
        """Ends all ikernels of the connection. Their sockets get all of their datagrams again."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def create(self, name: str) -> "Ikernel":
        """Makes an ikernel that has no socket yet."""
        text("name", name)
        number, body = self._exchange(Operation.CREATE, 0, name.encode())
        return Ikernel(self, number, body)

    def _exchange(self, operation: Operation, ikernel: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> tuple[int, bytes]:
        """Sends a request, and returns the number of the ikernel and what the reply gives."""
        try:
            with self._lock:
                try:
                    socket.send_fds(self._socket, [_HEAD.pack(operation, ikernel), body], descriptors)
                    reply = self._socket.recv(MAX_PACKET)
                except BaseException:  # such as a signal's: the next request would get this one's reply
                    self._socket.close()
                    raise
        except OSError as e:
            raise IkernelError(f"ask the daemon: {e}: is it still running? See `lambdanic list`", e.errno) from e
        if len(reply) < HEADER_LEN:
            raise IkernelError(f"ask the daemon: its reply has {len(reply)} bytes: is it still running? See `lambdanic list`", None)
        code, number = _HEAD.unpack_from(reply)
        if code == errno.EAGAIN:
            raise RegisterDiffers("a register has another value than the transaction expects", code)
        if code != 0:
            raise IkernelError(reply[HEADER_LEN:].decode(errors="replace"), code)
        return number, reply[HEADER_LEN:]


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

    def destroy(self) -> None:
        """Ends the ikernel and forgets its registers."""
        self._ikernels._exchange(Operation.DESTROY, self._number)

    def attach(self, sock: socket.socket) -> None:
        """Has the ikernel get the datagrams to a UDP socket that is bound, before the socket does. That ends when the socket closes."""
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
        _, body = self._ikernels._exchange(Operation.TRANSACT, self._number, _TRANSACTION.pack(*masks, *expected, *values))
        words = Struct(f"={len(self._names)}Q").unpack_from(body)
        return {name: _signed(word) if self._signed[name] else word for name, word in zip(self._names, words, strict=True)}

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
