# SPDX-License-Identifier: Apache-2.0
"""A server of sensors: average.py PORT. Each sends integers of four bytes, big-endian, by UDP. The server prints those above 100. To a
datagram of one byte it answers with the average of all."""

import socket
import sys


def main() -> None:
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.bind(("::", int(sys.argv[1])))
    total = count = 0
    print("ready", flush=True)
    while True:
        message, peer = server.recvfrom(1500)
        if len(message) == 4:
            value = int.from_bytes(message, "big", signed=True)
            total, count = total + value, count + 1
            if value > 100:
                print(f"alert {value}", flush=True)
        elif len(message) == 1:
            server.sendto(f"average {total / max(count, 1):.1f} of {count}".encode(), peer)


if __name__ == "__main__":
    main()
