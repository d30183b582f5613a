# SPDX-License-Identifier: Apache-2.0
"""A server of sensors: average.py PORT. Each sends integers of four bytes, big-endian, by UDP. The server prints those above 100. To a
datagram of one byte it answers with the average of all."""

import os
import socket
import sys

from lambdanic import IKERNEL_SOCKET, Ikernels


def main() -> None:
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.bind(("::", int(sys.argv[1])))
    ikernel = Ikernels(os.environ.get("LAMBDANIC_IKERNEL_SOCKET", IKERNEL_SOCKET)).create("threshold")
    ikernel.write(limit=100)
    ikernel.attach(server)
    print("ready", flush=True)
    while True:
        message, peer = server.recvfrom(1500)
        if len(message) == 4:
            print(f"alert {int.from_bytes(message, 'big', signed=True)}", flush=True)
        elif len(message) == 1:
            r = ikernel.read()
            server.sendto(f"average {r['sum'] / max(r['count'], 1):.1f} of {r['count']}".encode(), peer)


if __name__ == "__main__":
    main()
