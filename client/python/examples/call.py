# SPDX-License-Identifier: Apache-2.0
"""Calls a function by its name: call.py GATEWAY NAME [TEXT]. GATEWAY is unix:/run/lambdanic/default/lambdanic.sock or the like."""

import os
import sys

from lambdanic import Client, Error


def main() -> int:
    if len(sys.argv) < 3:
        print(f"usage: {sys.argv[0]} GATEWAY NAME [TEXT]", file=sys.stderr)
        return 2
    gateway, name, *text = sys.argv[1:]
    try:
        with Client(gateway=gateway, credentials=os.environ.get("LAMBDANIC_CREDENTIALS")) as client:
            reply = client.call(name, " ".join(text).encode(), deadline=1.0)
    except Error as e:
        print(f"{name}: {e}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(reply.body)
    return reply.status


if __name__ == "__main__":
    sys.exit(main())
