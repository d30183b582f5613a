# SPDX-License-Identifier: Apache-2.0
"""Faults of ikernels. A socket has a packet when there is one (api/ikernel/wire.go), which is only ever looked at."""

import errno
import select
import socket
from struct import Struct

from .errors import Closed, IkernelError, IkernelFault
from .ikernel_wire import MAX_PACKET

_CODE = Struct("=I")


class Watch:
    """Where an ikernel's fault is told."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def look(self) -> IkernelFault | None:
        """The fault; None: there is none yet."""
        if self.fileno() < 0:
            raise Closed("the ikernel was destroyed")
        try:
            packet = self._socket.recv(MAX_PACKET, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        if len(packet) < _CODE.size:
            raise IkernelError("wait for a fault: the daemon ended, and with it the ikernel", errno.ECONNRESET)
        return IkernelFault(packet[_CODE.size :].decode(errors="replace"), _CODE.unpack_from(packet)[0])

    def wait(self, timeout: float | None) -> IkernelFault | None:
        """The same, but waits."""
        if self.fileno() >= 0:
            ready = select.poll()
            ready.register(self, select.POLLIN)
            ready.poll(None if timeout is None else timeout * 1000)
        return self.look()
