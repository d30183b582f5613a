// SPDX-License-Identifier: Apache-2.0
// Uses an ikernel for a socket from its creation to its end: ikernels.js SOCKET. test/ikernels compares what the programs of all languages
// print.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { IkernelError, RegisterDiffers } from "../src/errors.js";
import { Ikernels, type Ikernel, type Registers } from "../src/ikernel.js";

const path = process.argv[2];
const server = createSocket("udp4");
const client = createSocket("udp4");

async function fails(kind: typeof IkernelError, asked: Promise<unknown>): Promise<void> {
  try {
    await asked;
    console.log("nothing fails");
  } catch (e) {
    console.log(e instanceof kind ? e.message : e);
  }
}

async function send(value: number): Promise<void> {
  const message = Buffer.alloc(4);
  message.writeInt32BE(value);
  await new Promise((resolve) => client.send(message, server.address().port, "127.0.0.1", resolve));
}

async function receive(next: Promise<unknown[]>): Promise<void> {
  const [message] = (await next) as [Buffer];
  console.log(`got ${message.readInt32BE()}`);
}

function show(registers: Registers): void {
  console.log(
    Object.entries(registers)
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
  );
}

async function use(k: Ikernel): Promise<void> {
  await k.write({ limit: 100 });
  await k.attach(server);
  let next = once(server, "message");
  await send(-50);
  await send(150);
  await receive(next);
  show(await k.read());
  await fails(RegisterDiffers, k.transact({ count: 3 }, { sum: -7, count: 0 }));
  const before = await k.transact({ count: 2 }, { sum: -7n, count: 0 });
  show(before);
  console.log(`sum=${(await k.read())["sum"]} was ${before["sum"]}`);
  await k.detach(server);
  next = once(server, "message");
  await send(50);
  await receive(next);
  await fails(IkernelError, k.detach(server));
  await fails(IkernelError, k.write({ x: 1 }));
}

/** Registers take all numbers of 64 bits. What is asked for at once is done one after the other. */
async function checkNumbers(k: Ikernel): Promise<void> {
  for (const [given, kept] of [
    [-(2n ** 63n), -(2n ** 63n)],
    [2n ** 63n - 1n, 2n ** 63n - 1n],
    [2n ** 64n - 1n, -1n],
  ] as const) {
    const [, registers] = await Promise.all([k.write({ count: given }), k.read()]);
    if (registers["count"] !== kept) {
      console.log(`${given} became ${registers["count"]}`);
    }
  }
  await k.write({ count: 2n ** 64n }).then(
    () => console.log("a register has more than 64 bits"),
    (e: unknown) => e instanceof RangeError || console.log(e),
  );
}

async function refused(unbound: Socket, k: Ikernel): Promise<void> {
  for (const bad of [k.attach(unbound), k.attach(-1)]) {
    await bad.then(
      () => console.log("a socket without a descriptor is attached"),
      (e: unknown) => e instanceof IkernelError || console.log(e),
    );
  }
  unbound.close();
}

const ikernels = await Ikernels.open(path);
server.bind(0, "127.0.0.1");
await once(server, "listening");
const k = await ikernels.create("threshold");
await use(k);
await fails(IkernelError, ikernels.create("nope"));
await fails(IkernelError, ikernels.create("echo", { namespace: "nowhere" }));
await fails(IkernelError, ikernels.create("", { namespace: "echo" }));
await ikernels.create("echo", { namespace: "tenant" });
await k.destroy();
const other = await ikernels.create("threshold");
await checkNumbers(other);
await refused(createSocket("udp4"), other);
await ikernels.close();
server.close();
client.close();
await Ikernels.open("/nonexistent").catch((e: unknown) => console.log(e instanceof IkernelError ? "no daemon" : e));
