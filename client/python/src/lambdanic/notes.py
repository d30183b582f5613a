# SPDX-License-Identifier: Apache-2.0
"""What an application says to its ikernel."""

import mmap
from collections.abc import Callable

from .errors import Closed, NotesFull
from .mapping import HEAD_LEN, Mapping, record_len


class Notes:
    """Notes to an ikernel, which the application writes in place. One thread writes them."""

    def __init__(self, descriptor: int, size: int, deliver: Callable[[], int]) -> None:
        self._memory: Mapping | None = Mapping(descriptor, size, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
        self._size = size
        self._deliver = deliver
        self._at = self._memory.second[0]  # what the position becomes when they are delivered
        self._reserved: list[memoryview] = []

    def close(self) -> None:
        """Ends the notes."""
        if self._memory is not None:
            self._end_reserved()
            self._memory.close()
        self._memory = None

    def reserve(self, length: int) -> memoryview:
        """Where to write the next note, until deliver or close. NotesFull: there is no room until those before are delivered."""
        memory = self._mapped()
        if not 0 <= length <= self._size - HEAD_LEN:
            raise ValueError(f"a note of {length} bytes: one has up to {self._size - HEAD_LEN}")
        end = self._at + record_len(length)
        if end - memory.first[0] > self._size:
            raise NotesFull("there is no room for the note: deliver those before")
        begin = self._at & (self._size - 1)
        memory.lengths[begin // memory.lengths.itemsize] = length
        memory.lengths[begin // memory.lengths.itemsize + 1] = 0
        begin += HEAD_LEN
        self._at = end
        self._reserved.append(memory.bytes[begin : begin + length])
        return self._reserved[-1]

    def deliver(self) -> int:
        """Has the ikernel get all notes that are written, in order, before it returns how many."""
        memory = self._mapped()
        self._end_reserved()
        memory.second[0] = self._at  # the daemon's socket orders this before what the daemon does, on any machine
        return self._deliver()

    def _end_reserved(self) -> None:
        for view in self._reserved:
            view.release()
        self._reserved.clear()

    def _mapped(self) -> Mapping:
        if self._memory is None:
            raise Closed("the notes were closed")
        return self._memory
