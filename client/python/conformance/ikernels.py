# SPDX-License-Identifier: Apache-2.0
"""Uses an ikernel for a socket from its creation to its end: ikernels.py SOCKET. test/ikernels compares what the programs of all
languages print."""

import socket
import sys
from collections.abc import Callable

from lambdanic import Ikernel, IkernelError, Ikernels, RegisterDiffers


def fails(kind: type[Exception], f: Callable[[], object]) -> None:
    try:
        f()
    except kind as e:
        print(e)


def show(registers: dict[str, int]) -> None:
    print(" ".join(f"{name}={value}" for name, value in registers.items()))


def use(k: Ikernel, server: socket.socket, client: socket.socket) -> None:
    def send(value: int) -> None:
        client.send(value.to_bytes(4, "big", signed=True))

    def receive() -> None:
        print("got", int.from_bytes(server.recv(4), "big", signed=True))

    k.write(limit=100)
    k.attach(server)
    send(-50)
    send(150)
    receive()
    show(k.read())
    fails(RegisterDiffers, lambda: k.transact({"count": 3}, {"sum": -7, "count": 0}))
    before = k.transact({"count": 2}, {"sum": -7, "count": 0})
    show(before)
    print(f"sum={k.read()['sum']} was {before['sum']}")
    k.detach(server)
    send(50)
    receive()
    fails(IkernelError, lambda: k.detach(server))
    fails(ValueError, lambda: k.write(x=1))


def check_numbers(k: Ikernel) -> None:
    """Registers take all numbers of their types, and no others."""
    for values in {"sum": -1 << 63, "count": (1 << 64) - 1}, {"sum": (1 << 63) - 1, "count": 0}:
        k.write(**values)
        if (r := k.read()) | values != r:
            print(f"{values} became {r}")
    for name, bad in ("sum", 1 << 63), ("sum", (-1 << 63) - 1), ("count", -1), ("count", 1 << 64):
        try:
            k.write(**{name: bad})
            print(f"{name} takes {bad}")
        except ValueError:
            pass


def main() -> None:
    with (
        Ikernels(sys.argv[1]) as ikernels,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("127.0.0.1", 0))
        client.connect(server.getsockname())
        k = ikernels.create("threshold")
        use(k, server, client)
        fails(IkernelError, lambda: ikernels.create("nope"))
        fails(IkernelError, lambda: ikernels.create("echo", namespace="nowhere"))
        fails(IkernelError, lambda: ikernels.create("", namespace="echo"))
        ikernels.create("echo", namespace="tenant")
        k.destroy()
        check_numbers(ikernels.create("threshold"))
    try:
        Ikernels("/nonexistent")
    except IkernelError:
        print("no daemon")


if __name__ == "__main__":
    main()
