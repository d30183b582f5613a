# SPDX-License-Identifier: Apache-2.0
"""Tags packets by a key of a namespace, and checks the tags of answers (docs/protocol.md, "Tags")."""

import re
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Self

from .wire import HEADER_LEN, Flag, Header

try:  # it is in C, and so much faster
    from siphash24 import siphash24  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    siphash24 = None

_TAGGED_LEN = HEADER_LEN - 8  # how much of a header its tag covers: all before it
_FLAGS, _LENGTH, _CLIENT = 4, 6, 44  # where the fields are in a packet; behind the client is the sequence number
_TAG_FLAGS = int(Flag.TAG | Flag.TAG_PAYLOAD | Flag.ODD_KEY)
_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1
_KEY = re.compile(r"lnk1:([^:]+):0*([1-9][0-9]{0,9}):([A-Za-z0-9_-]{22})")  # the secret is of 16 bytes


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A secret of a namespace. Nothing that shows it shows the secret."""

    namespace: str
    number: int
    secret: bytes

    @classmethod
    def parse(cls, text: object) -> Self:
        """Reads a key's text, with white space around it."""
        if not isinstance(text, str):
            raise TypeError(f"key is of type {type(text).__name__}: give a string")
        match = _KEY.fullmatch(text.strip())
        if match is not None:
            namespace, number, coded = match.groups()
            secret = urlsafe_b64decode(coded + "==")
            if int(number) <= _MASK32 and urlsafe_b64encode(secret) == coded.encode() + b"==":
                return cls(namespace, int(number), secret)
        raise ValueError("not a key: it is one line, lnk1:NAMESPACE:NUMBER:SECRET, as `lambdanic namespace key add` writes it")

    def __repr__(self) -> str:
        return f"key {self.number} of namespace {self.namespace}"


class Tagger:
    """Tags the packets of one socket."""

    def __init__(self, key: Key, payload: bool) -> None:
        """With payload, tags cover what is behind the header as well."""
        self._key = key
        self._payload = payload
        self._flags = int(Flag.TAG | (Flag.TAG_PAYLOAD if payload else 0) | (Flag.ODD_KEY if key.number % 2 else 0))
        self._client = secrets.randbits(32)  # where the socket's identities begin
        self._sent = 0  # packets: the low half is the sequence number; with each overflow, the client gets another identity

    def tag(self, packet: bytes) -> bytes:
        """Gives a packet the next sequence number, and its tag."""
        self._sent += 1
        client = (self._client + (self._sent >> 32)) & _MASK32 or 1 << 31  # 0 is the anonymous one
        tagged = bytearray(packet)
        tagged[_FLAGS] |= self._flags
        struct.pack_into(">II", tagged, _CLIENT, client, self._sent & _MASK32)
        struct.pack_into(">Q", tagged, _TAGGED_LEN, self._tag_of(tagged))
        return bytes(tagged)

    def accepts(self, header: Header, packet: bytes) -> bool:
        """Whether a packet with this header is tagged as the requests are."""
        return header.flags & _TAG_FLAGS == self._flags and header.tag == self._tag_of(packet)

    def _tag_of(self, packet: bytes | bytearray) -> int:
        text = bytes(packet[:_TAGGED_LEN])
        if self._payload:
            text += packet[HEADER_LEN : HEADER_LEN + int.from_bytes(packet[_LENGTH : _LENGTH + 2])]
        if siphash24 is None:
            return siphash(self._key.secret, text)
        digest: bytes = siphash24(text, key=self._key.secret).digest()
        return int.from_bytes(digest, "little")


def siphash(secret: bytes, text: bytes) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012)."""
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
    v0, v1, v2, v3 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    # The last word ends with how many bytes the text has.
    whole, rest = divmod(len(text), 8)
    for word in struct.unpack(f"<{whole + 1}Q", text + bytes(7 - rest) + bytes([len(text) % 256])):
        v0, v1, v2, v3 = _round(*_round(v0, v1, v2, v3 ^ word))
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = v0 + v1 & _MASK64
    v2 = v2 + v3 & _MASK64
    v1 = (v1 << 13 & _MASK64 | v1 >> 51) ^ v0
    v3 = (v3 << 16 & _MASK64 | v3 >> 48) ^ v2
    v0 = (v0 << 32 & _MASK64 | v0 >> 32) + v3 & _MASK64
    v2 = v2 + v1 & _MASK64
    v1 = (v1 << 17 & _MASK64 | v1 >> 47) ^ v2
    v3 = (v3 << 21 & _MASK64 | v3 >> 43) ^ v0
    return v0, v1, v2 << 32 & _MASK64 | v2 >> 32, v3
