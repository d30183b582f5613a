# SPDX-License-Identifier: Apache-2.0
"""Uses rings and notes: rings.py SOCKET use, rings.py SOCKET echo COUNT wait|poll, rings.py SOCKET records, or rings.py SOCKET
fault|outlive. test/ikernels compares what the programs of all languages print."""

import mmap
import select
import socket
import sys
import time
from collections.abc import Callable

from lambdanic import Closed, DeadlineExceeded, Ikernel, IkernelError, IkernelFault, Ikernels, Message, Notes, NotesFull, Ring, RingCounts

MESSAGES = 30
RINGS = 4


def fails(kind: type[Exception], f: Callable[[], object]) -> None:
    try:
        f()
        print("nothing fails")
    except kind as e:
        print(e)


def refuses(kind: type[Exception], f: Callable[[], object]) -> None:
    try:
        f()
        print("bad arguments are accepted")
    except kind:
        pass


class Sender:
    """Sends messages to the application's own socket."""

    def __init__(self, k: Ikernel, server: socket.socket, client: socket.socket) -> None:
        self._k, self._client = k, client
        self.addresses = client.getsockname(), server.getsockname()
        self._sent = 0

    def send(self, data: bytes) -> RingCounts:
        """Waits until the ikernel has posted or refused it."""
        self._client.send(data)
        self._sent += 1
        while True:
            counts = RingCounts(*map(sum, zip(*self._k.ring_counts(), strict=True)))
            if sum(counts) >= self._sent:
                return counts

    def is_message(self, m: Message, number: int) -> bool:
        return m.data == bytes([number] * 100) and (m.sender, m.receiver) == self.addresses and 0 < m.time < time.monotonic_ns()


def use_ring(k: Ikernel, server: socket.socket, client: socket.socket) -> None:
    """Fills a ring, and empties it."""
    fails(IkernelError, lambda: k.open_rings(count=0, size=0))
    fails(IkernelError, lambda: k.open_rings(count=1, size=5000))
    size = mmap.PAGESIZE
    [ring] = k.open_rings(count=1, size=size)
    fails(IkernelError, lambda: k.open_rings(count=1, size=size))
    k.attach(server)
    sender = Sender(k, server, client)
    for i in range(MESSAGES):
        counts = sender.send(bytes([i] * 100))
    print(f"posted {counts.posted}, refused {counts.refused}")
    readable, _, _ = select.select([ring], [], [], 0)
    n = 0
    while (m := ring.poll()) and sender.is_message(m, n):
        n, last = n + 1, m
    print("polled", n)
    refuses(ValueError, lambda: last.data[0])  # its place is the ikernel's
    sender.send(bytes([n] * 100))
    m = next(iter(ring))
    if not sender.is_message(m, n) or readable != [ring]:
        print("the message is wrong")
    kept = m.data[:3]
    ring.release()
    if select.select([ring], [], [], 0) != ([], [], []):
        print("the ring is readable")
    refuses(DeadlineExceeded, lambda: ring.read(0.01))
    print("no more")
    k.detach(server)
    ring.close()
    ring.close()
    refuses(Closed, ring.poll)
    if len(kept.tobytes()) != 3:  # what the application has of the memory stays
        print("a view is gone")


def write_note(notes: Notes, ring: int, key: bytes) -> int:
    """Returns how many were delivered to have room for it."""
    delivered = 0
    note = ring.to_bytes(4, sys.byteorder) + key
    try:
        notes.reserve(len(note))[:] = note
    except NotesFull:
        delivered = notes.deliver()
        notes.reserve(len(note))[:] = note
    return delivered


def use_notes(k: Ikernel, server: socket.socket, client: socket.socket) -> None:
    """Has messages come by the rings that notes say."""
    k.write(length=4)
    rings = k.open_rings(count=RINGS, size=mmap.PAGESIZE, polled=True)
    k.attach(server)
    notes = k.open_notes()
    fails(IkernelError, k.open_notes)
    refuses(ValueError, rings[0].read)
    refuses(ValueError, lambda: notes.reserve(1 << 16))
    delivered = sum(write_note(notes, 0, key.to_bytes(4, "big")) for key in range(5000))
    print("delivered", delivered + notes.deliver())
    sender = Sender(k, server, client)
    right = 0
    for i in range(20):
        key = i.to_bytes(4, "big")
        write_note(notes, i % RINGS, key)
        notes.deliver()
        sender.send(key)
        m = rings[i % RINGS].poll()
        right += m is not None and m.data == key
    print(right, "keys by their rings")


def echo(k: Ikernel, server: socket.socket, count: int, polled: bool) -> None:
    """Sends messages back, which have their numbers in order."""
    [ring] = k.open_rings(count=1, size=1 << 16, polled=polled)
    k.attach(server)
    print(server.getsockname()[1], flush=True)
    for i in range(count):
        m = poll(ring) if polled else ring.read()
        number = int.from_bytes(m.data[:8], sys.byteorder)
        if number != i:
            print(f"got message {number}, want {i}")
        server.sendto(m.data, m.sender)
    print("done")


def poll(ring: Ring) -> Message:
    while True:
        if m := ring.poll():
            return m


def records(k: Ikernel) -> None:
    """Prints what a ring has, each time that the daemon has changed it."""
    [ring] = k.open_rings(count=1, size=mmap.PAGESIZE, polled=True)
    while True:
        while m := ring.poll():
            print(str(m.data, "ascii"), "from", *m.sender)
        print("none")
        if not k.ring_counts()[0].posted:
            return


def print_fault(k: Ikernel, ring: Ring) -> None:
    """Says what waits for an ikernel learns."""
    try:
        ring.read()
    except IkernelFault:
        print("the ring ends by a fault")
    except IkernelError:
        print("the ring ends with the daemon")
    select.select([k.fault_fileno()], [], [])
    try:
        waited, fault = k.wait_fault(), k.fault
        if fault is not None and str(waited) == str(fault):
            print(f"{fault.code}: {fault}")
    except IkernelError:
        print("no daemon")


def use_fault(ikernels: Ikernels, server: socket.socket) -> None:
    k = ikernels.create("deserialize")
    [ring] = k.open_rings(count=1, size=mmap.PAGESIZE)
    notes = k.open_notes()
    k.attach(server)
    if k.fault is not None or k.wait_fault(0) is not None:
        print("there is a fault")
    note = (1).to_bytes(4, sys.byteorder) + bytes(36)  # a field without a name
    notes.reserve(len(note))[:] = note
    fails(IkernelFault, notes.deliver)
    print_fault(k, ring)
    fails(IkernelFault, lambda: k.attach(server))
    print("fields", k.read()["fields"])
    k.destroy()
    refuses(Closed, lambda: k.fault)
    ikernels.create("deserialize").attach(server)


def outlive(k: Ikernel) -> None:
    """Waits until the daemon ends."""
    [ring] = k.open_rings(count=1, size=mmap.PAGESIZE)
    print("ready", flush=True)
    print_fault(k, ring)


def main() -> None:
    path, mode = sys.argv[1:3]
    with (
        Ikernels(path) as ikernels,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("127.0.0.1", 0))
        client.connect(server.getsockname())
        k = ikernels.create("steering")
        if mode == "records":
            records(k)
        elif mode == "fault":
            use_fault(ikernels, server)
        elif mode == "outlive":
            outlive(k)
        elif mode == "echo":
            echo(k, server, int(sys.argv[3]), sys.argv[4] == "poll")
        else:
            use_ring(k, server, client)
            k.destroy()
            use_notes(ikernels.create("steering"), server, client)


if __name__ == "__main__":
    main()
