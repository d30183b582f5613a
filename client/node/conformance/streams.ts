// SPDX-License-Identifier: Apache-2.0
// Attaches TCP sockets to an ikernel: streams.js SOCKET. test/ikernels compares what the programs of all languages print.

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { IkernelError } from "../src/errors.js";
import { Ikernels, type Ikernel } from "../src/ikernel.js";

async function fails(asked: Promise<unknown>): Promise<void> {
  await asked.then(
    () => console.log("nothing fails"),
    (e: unknown) => console.log(e instanceof IkernelError ? e.message : e),
  );
}

async function listen(): Promise<Server> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return listener;
}

/** False: the kernel is newer than 6.18 and lets no listener have an ikernel. Then each connection gets it. */
async function attachListener(k: Ikernel, listener: Server): Promise<boolean> {
  try {
    await k.attach(listener);
    return true;
  } catch (e) {
    if (e instanceof IkernelError && e.message.includes("attach each after it is accepted")) {
      return false;
    }
    throw e;
  }
}

/** Waits until the ikernel has got so many, so that they share no segment. */
async function awaitCount(k: Ikernel, want: bigint): Promise<void> {
  while (((await k.read())["count"] as bigint) < want);
}

async function use(k: Ikernel, attached: Server | Socket, server: Socket, client: Socket): Promise<void> {
  const send = (value: number): void => {
    const message = Buffer.alloc(4);
    message.writeInt32BE(value);
    client.write(message);
  };
  const receive = async (next: Promise<unknown[]>): Promise<void> => {
    const [message] = (await next) as [Buffer];
    console.log(`got ${message.readInt32BE()}`);
  };
  const greeted = once(client, "data");
  server.write("x");
  await greeted;
  let next = once(server, "data");
  send(-50);
  await awaitCount(k, 1n);
  send(150);
  await awaitCount(k, 2n);
  await receive(next);
  console.log(
    Object.entries(await k.read())
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
  );
  await fails(k.attach(attached));
  await k.detach(attached);
  next = once(server, "data");
  send(50);
  await receive(next);
  await fails(k.detach(server));
}

async function attachAndUse(k: Ikernel, listening: boolean): Promise<void> {
  await k.write({ limit: 100 });
  const listener = await listen();
  const isAttached = listening && (await attachListener(k, listener));
  const accepted = once(listener, "connection");
  const client = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  const [server] = (await accepted) as [Socket];
  if (!isAttached) {
    await k.attach(server);
  }
  await use(k, isAttached ? listener : server, server, client);
  await k.destroy();
  client.destroy();
  server.destroy();
  listener.close();
}

const ikernels = await Ikernels.open(process.argv[2]);
await attachAndUse(await ikernels.create("threshold"), false);
await attachAndUse(await ikernels.create("threshold"), true);
const listener = await listen();
await fails((await ikernels.create("echo")).attach(listener));
listener.close();
await ikernels.close();
