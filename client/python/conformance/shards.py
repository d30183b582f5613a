# SPDX-License-Identifier: Apache-2.0
"""Rebuilds datagrams by parities: shards.py. Each line has messages of the ikernel parity in hexadecimal, each with an x before it, of which
the first is the parity. test/ikernels compares what the programs of all languages print for each line."""

import sys

from lambdanic import Shard


def main() -> None:
    for line in sys.stdin:
        try:
            parity, *others = [Shard.parse(bytes.fromhex(word[1:])) for word in line.split()]
            lost = parity.rebuild(others)
        except ValueError:
            print("refused")
        else:
            print(lost.group, lost.index, "x" + lost.data.hex())


if __name__ == "__main__":
    main()
