# SPDX-License-Identifier: Apache-2.0
"""Attaches TCP sockets to an ikernel: streams.py SOCKET. test/ikernels compares what the programs of all languages print."""

import errno
import socket
import sys
from collections.abc import Callable

from lambdanic import Ikernel, IkernelError, Ikernels

PATIENCE = 60  # s. A socket with a time-out does not block, as an ikernel wants it


def fails(f: Callable[[], object]) -> None:
    try:
        f()
    except IkernelError as e:
        print(e)


def listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    return listener


def attach_listener(k: Ikernel, listener: socket.socket) -> bool:
    """False: the kernel is newer than 6.18 and lets no listener have an ikernel. Then each connection gets it."""
    try:
        k.attach(listener)
    except IkernelError as e:
        if e.errno != errno.EOPNOTSUPP:
            raise
        return False
    return True


def use(k: Ikernel, attached: socket.socket, server: socket.socket, client: socket.socket) -> None:
    def send(value: int) -> None:
        client.send(value.to_bytes(4, "big", signed=True))

    def receive() -> None:
        print("got", int.from_bytes(server.recv(4), "big", signed=True))

    def await_count(want: int) -> None:
        """So that no numbers share a segment."""
        while k.read()["count"] < want:
            pass

    server.send(b"x")
    client.recv(1)
    send(-50)
    await_count(1)
    send(150)
    await_count(2)
    receive()
    print(" ".join(f"{name}={value}" for name, value in k.read().items()))
    fails(lambda: k.attach(attached))
    k.detach(attached)
    send(50)
    receive()
    fails(lambda: k.detach(server))


def attach_and_use(k: Ikernel, listening: bool) -> None:
    k.write(limit=100)
    with listen() as listener:
        attached = listening and attach_listener(k, listener)
        with socket.create_connection(listener.getsockname()) as client:
            server, _ = listener.accept()
            with server:
                server.settimeout(PATIENCE)
                if not attached:
                    k.attach(server)
                use(k, listener if attached else server, server, client)
    k.destroy()


def main() -> None:
    with Ikernels(sys.argv[1]) as ikernels:
        attach_and_use(ikernels.create("threshold"), False)
        attach_and_use(ikernels.create("threshold"), True)
        with listen() as listener:
            fails(lambda: ikernels.create("echo").attach(listener))


if __name__ == "__main__":
    main()
