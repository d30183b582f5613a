# SPDX-License-Identifier: Apache-2.0
"""Memory that the kernel and an application share for rings and notes (api/ikernel/wire.go). Mapping it needs no privilege."""

import mmap
import platform
import threading

HEAD_LEN = 8  # before each record: its length (BPF_RINGBUF_HDR_SZ)

_IS_ORDERED = platform.machine() == "x86_64"
_lock = threading.Lock()


class Mapping:
    """Two pages, each with a position, and behind the second one the bytes, twice, so that what lies in it is in one piece. The
    application writes one of the two sides."""

    def __init__(self, descriptor: int, size: int, first: int, second: int) -> None:
        page = mmap.PAGESIZE
        self._maps = [mmap.mmap(descriptor, page, mmap.MAP_SHARED, first)]
        self._maps.append(mmap.mmap(descriptor, page + 2 * size, mmap.MAP_SHARED, second, offset=page))
        self.first, self.second = (memoryview(m)[:HEAD_LEN].cast("Q") for m in self._maps)  # the positions
        self.bytes = memoryview(self._maps[1])[page:]
        self.lengths = self.bytes.cast("I")  # read and written in one piece, as struct would not

    def close(self) -> None:
        for view in self.first, self.second, self.lengths, self.bytes:
            view.release()
        for m in self._maps:
            try:
                m.close()
            except BufferError:
                pass  # the application has views of it, and it ends with them


def record_len(length: int) -> int:
    """How many bytes a record takes."""
    return (HEAD_LEN + length + 7) & ~7


def fence() -> None:
    """Has loads and stores before it come before those behind it.

    Python has no such operation. An x86-64 orders all but a store and a later load of something else; poll(2) orders these, too, as it
    takes a lock in the kernel. Other machines, such as arm64, may swap any two: there a lock that is given back and then taken again
    orders them (release, acquire). The C library has the right operations, but the client would need it for nothing else.
    """
    if not _IS_ORDERED:
        for _ in range(2):
            with _lock:
                pass
