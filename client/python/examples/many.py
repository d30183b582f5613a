# SPDX-License-Identifier: Apache-2.0
"""Keeps calls in flight by asyncio: many.py ADDRESS WORKLOAD [CALLS]. The first that fails cancels the others."""

import asyncio
import sys

from lambdanic import AsyncClient


async def main(address: str, workload: int, calls: int) -> None:
    async with AsyncClient(address) as client:
        async with asyncio.TaskGroup() as tasks:
            replies = [tasks.create_task(client.call(workload, b"/hello", deadline=1.0)) for _ in range(calls)]
        lengths = sum(len(reply.result().body) for reply in replies)
        print(f"{calls} replies of {lengths} bytes in all; {client.stats.resent} packets were sent again")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1000))
