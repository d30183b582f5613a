# SPDX-License-Identifier: Apache-2.0
"""Rebuilds datagrams that were lost, from what the ikernel parity posts of the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

_HEAD = Struct("=QHHI")  # struct parity_head of ikernels/parity/parity.bpf.c: group, index, count, length


@dataclass(frozen=True)
class Shard:
    """A copy of a datagram by the ikernel parity, or the parity of a group of them."""

    group: int
    index: int  # of the datagram in its group
    count: int  # 0: this is a datagram; or else it is the parity of so many
    length: int  # of the datagram; of a parity, what the lengths of all XOR to
    data: bytes

    @classmethod
    def parse(cls, message: bytes | memoryview) -> Shard:
        """Reads what parity posts to a ring, and copies it. ValueError: the message is of another ikernel."""
        if len(message) < _HEAD.size:
            raise ValueError(f"a message of {len(message)} bytes is no shard: is the ring one of parity?")
        group, index, count, length = _HEAD.unpack_from(message)
        shard = cls(group, index, count, length, bytes(message[_HEAD.size :]))
        if shard.count == 0 and shard.length != len(shard.data):
            raise ValueError(f"a shard of {len(shard.data)} bytes says that it has {shard.length}: is the ring one of parity?")
        return shard

    def rebuild(self, others: Sequence[Shard]) -> Shard:
        """Makes the datagram that is missing of a group from its parity, which this is, and all others, in any order. ValueError: they are
        not those of one group."""
        missing = self._missing(others)
        length, data = self.length, int.from_bytes(self.data, sys.byteorder)
        for other in others:
            if len(other.data) > len(self.data):
                raise ValueError(f"rebuild shard {missing} of group {self.group}: shard {other.index} is longer than the parity")
            length ^= len(other.data)
            data ^= int.from_bytes(other.data.ljust(len(self.data), b"\0"), sys.byteorder)
        if length > len(self.data):
            raise ValueError(f"rebuild shard {missing} of group {self.group}: the shards do not belong together")
        return Shard(self.group, missing, 0, length, data.to_bytes(len(self.data), sys.byteorder)[:length])

    def _missing(self, others: Sequence[Shard]) -> int:
        """The index of the one datagram of the group that is not among others."""
        if self.count == 0:
            raise ValueError("rebuild a shard: only a parity can")
        left = set(range(self.count))
        for other in others:
            if other.group != self.group or other.count != 0 or other.index not in left:
                raise ValueError(f"rebuild a shard of group {self.group}: shard {other.index} of group {other.group} is none of the others")
            left.remove(other.index)
        if len(left) != 1:
            raise ValueError(f"rebuild a shard of group {self.group}: there are {len(others)} others, and it takes {self.count - 1}")
        return left.pop()
