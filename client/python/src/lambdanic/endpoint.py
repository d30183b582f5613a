# SPDX-License-Identifier: Apache-2.0
"""A UDP socket that is connected to a server, and hears only that."""

import errno
import ipaddress
import socket
import struct
from itertools import groupby

from .wire import MAX_PAYLOAD, PORT

_RECEIVE_SIZE = 2048  # longer than any packet
_BUFFER = 4 << 20
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
_UDP_SEGMENT = 103  # linux/udp.h
_SEGMENTS = 40  # of one size and 1,472 bytes at most, they fit one datagram's length

# Errors that an earlier packet caused: an ICMP message came back, which the kernel hands to the next system call, whatever it is. Nothing
# is lost by going on, as the lambda's server may be about to come back.
_REFUSED = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH}
_NO_SEGMENTS = {errno.EIO, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOPROTOOPT}


def split_address(address: str, port: int) -> tuple[str, int]:
    """Splits HOST, HOST:PORT, [IPv6]:PORT, [IPv6] or IPv6. port is the default."""
    host, given = address, ""
    if address.startswith("["):
        host, bracket, given = address[1:].partition("]")
        if not bracket or given and not given.startswith(":"):
            host = ""
        given = given[1:]
    elif address.count(":") == 1:
        host, _, given = address.partition(":")
    if not host or given and not (given.isascii() and given.isdecimal() and 0 < int(given[:6]) < 1 << 16):
        raise ValueError(f"no such address: {address!r}: give HOST, HOST:PORT or [IPv6]:PORT")
    return host, int(given) if given else port


def is_refusal(error: OSError) -> bool:
    return error.errno in _REFUSED


class Endpoint:
    def __init__(self, address: str) -> None:
        host, port = split_address(address, PORT)
        family, kind, _, _, to = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._socket = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        try:
            for force, plain in ((_SO_RCVBUFFORCE, socket.SO_RCVBUF), (_SO_SNDBUFFORCE, socket.SO_SNDBUF)):
                try:
                    self._socket.setsockopt(socket.SOL_SOCKET, force, _BUFFER)
                except OSError:  # only root may
                    self._socket.setsockopt(socket.SOL_SOCKET, plain, _BUFFER)
            self._socket.connect(to)
        except OSError:
            self._socket.close()
            raise
        # How much of a message one packet holds: IPv6's header is 20 bytes longer.
        peer = ipaddress.ip_address(str(to[0]).partition("%")[0])
        self.single = MAX_PAYLOAD if peer.version == 4 or peer.ipv4_mapped else MAX_PAYLOAD - 20
        self._segments = True

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, packets: list[bytes]) -> OSError | None:
        """Sends packets. Those that the kernel does not take count as lost on the way: the error says why, or what
        became of an earlier one."""
        if len(packets) == 1:
            return self._send(packets)
        lost = None
        for _, group in groupby(packets, len):
            same = list(group)
            at_once = _SEGMENTS if self._segments else 1
            for i in range(0, len(same), at_once):
                lost = self._send(same[i : i + at_once]) or lost
        return lost

    def _send(self, packets: list[bytes]) -> OSError | None:
        """Sends packets of one size: several by one system call, which the kernel takes apart (UDP_SEGMENT in udp(7))."""
        error: OSError | None = None
        for _ in range(4):  # an error is of an earlier packet
            try:
                if len(packets) == 1:
                    self._socket.send(packets[0])
                else:
                    size = struct.pack("H", len(packets[0]))
                    self._socket.sendmsg(packets, [(socket.IPPROTO_UDP, _UDP_SEGMENT, size)])
                return error
            except OSError as e:
                if len(packets) > 1 and e.errno in _NO_SEGMENTS:
                    self._segments = False
                    return self.send(packets)
                error = e
                if not is_refusal(e):
                    break
        return error

    def receive(self) -> bytes | OSError | None:
        """A datagram, or the network's error about an earlier one, or None where nothing has come."""
        try:
            return self._socket.recv(_RECEIVE_SIZE)
        except BlockingIOError:
            return None
        except OSError as e:
            if not is_refusal(e):
                raise
            return e
