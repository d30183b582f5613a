# SPDX-License-Identifier: Apache-2.0
"""Packets: how they are parsed and built, and where their bytes stand in a message."""

from .wire import FRAGMENT, HEADER_LEN, LAYOUT, MAGIC, VERSION, Header, Type

_PADDING = bytes(2048)


class NotRPC(ValueError):
    """The bytes are not a λ-RPC packet of this version."""


class BadPacket(ValueError):
    """A λ-RPC packet contradicts itself."""


def parse(datagram: bytes) -> tuple[Header, bytes]:
    """Splits a datagram into header and message bytes, and leaves the padding out."""
    if len(datagram) < HEADER_LEN:
        raise NotRPC(f"{len(datagram)} bytes, shorter than a header")
    header = Header._make(LAYOUT.unpack_from(datagram))
    if header.magic != MAGIC or header.version != VERSION:
        raise NotRPC(f"magic {header.magic:#06x}, version {header.version}")
    if not Type.REQUEST <= header.type <= Type.ERROR:
        raise BadPacket(f"type {header.type}")
    if header.length > len(datagram) - HEADER_LEN:
        raise BadPacket(f"length {header.length} in a datagram with {len(datagram) - HEADER_LEN} bytes of payload")
    return header, datagram[HEADER_LEN : HEADER_LEN + header.length]


def encode(header: Header, payload: bytes | memoryview = b"", room: int = 0) -> bytes:
    """Makes a datagram, padded so that room bytes follow the header."""
    return b"".join((LAYOUT.pack(*header), payload, _PADDING[: max(0, room - len(payload))]))


def placement(header: Header) -> tuple[int, int]:
    """Where the packet's bytes stand: at offset, in a message whose packets but the last carry size bytes each."""
    length, index, count, total = header.length, header.index, header.count, header.message_len
    if index >= count or length > total:
        raise BadPacket(f"packet {index} of {count}, {length} of {total} bytes")
    if count == 1:
        if length != total:
            raise BadPacket(f"a single packet of {length} bytes is not its message of {total}")
        return 0, length
    if length == 0:
        raise BadPacket("empty packet of several")
    if index < count - 1:
        offset, size = index * length, length
    else:
        offset = total - length
        size, rest = divmod(offset, count - 1)
        if rest or length > size:
            raise BadPacket("the last packet does not fit the others")
    if fragments(total, size) != count:
        raise BadPacket(f"{count} packets of {size} bytes are not {total}")
    return offset, size


def fragments(total: int, size: int) -> int:
    """How many packets of size bytes a message takes."""
    return max(1, -(-total // size))


def packets(total: int, single: int) -> tuple[int, int]:
    """In how many packets a request travels and with how many bytes in each, where one packet holds up to single bytes."""
    if total <= single:
        return 1, total
    return fragments(total, FRAGMENT), FRAGMENT
