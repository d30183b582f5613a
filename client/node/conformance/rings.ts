// SPDX-License-Identifier: Apache-2.0
// Uses rings and notes: rings.js SOCKET use, rings.js SOCKET echo COUNT wait|poll, rings.js SOCKET records, or rings.js SOCKET fault|outlive.
// test/ikernels compares what the programs of all languages print.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Closed, IkernelError, IkernelFault } from "../src/errors.js";
import { Ikernels, type Ikernel, type Message, type Ring, type RingCounts } from "../src/ikernel.js";

const [path, mode, count, how] = process.argv.slice(2);
const messages = 30;
const ringsCount = 4;
const page = 4096;
const server = createSocket("udp4");
const client = createSocket("udp4");
let sent = 0; // to the ikernel

async function fails(asked: Promise<unknown>): Promise<void> {
  await asked.then(
    () => console.log("nothing fails"),
    (e: unknown) => console.log(e instanceof IkernelError ? e.message : e),
  );
}

async function refuses(kind: new (...args: never[]) => Error, f: () => unknown): Promise<void> {
  try {
    await f();
    console.log("bad arguments are accepted");
  } catch (e) {
    if (!(e instanceof kind)) {
      console.log(e);
    }
  }
}

/** Sends a message, and waits until the ikernel has posted or refused it. */
async function send(k: Ikernel, data: Buffer): Promise<RingCounts> {
  await new Promise((resolve) => client.send(data, server.address().port, "127.0.0.1", resolve));
  sent++;
  for (;;) {
    const sum = { posted: 0n, refused: 0n };
    for (const { posted, refused } of await k.ringCounts()) {
      sum.posted += posted;
      sum.refused += refused;
    }
    if (sum.posted + sum.refused >= sent) {
      return sum;
    }
  }
}

function isMessage(m: Message, number: number): boolean {
  return (
    m.data.equals(Buffer.alloc(100, number)) &&
    isDeepStrictEqual([m.from, m.to], [client.address(), server.address()]) &&
    m.time > 0n &&
    m.time < process.hrtime.bigint()
  );
}

/** Fills a ring, and empties it. */
async function useRing(k: Ikernel): Promise<Ring> {
  await fails(k.openRings({ count: 0, size: 0 }));
  await fails(k.openRings({ count: 1, size: 5000 }));
  await refuses(RangeError, () => k.openRings({ count: -1, size: page }));
  const [ring] = (await k.openRings({ count: 1, size: page })) as [Ring];
  await fails(k.openRings({ count: 1, size: page }));
  await k.attach(server);
  let counts = { posted: 0n, refused: 0n };
  for (let i = 0; i < messages; i++) {
    counts = await send(k, Buffer.alloc(100, i));
  }
  console.log(`posted ${counts.posted}, refused ${counts.refused}`);
  let n = 0;
  for (let m = ring.poll(); m !== undefined && isMessage(m, n); m = ring.poll()) {
    n++;
  }
  console.log(`polled ${n}`);
  const waiting = ring.read();
  await refuses(IkernelError, () => ring.read()); // a ring has one reader
  await send(k, Buffer.alloc(100, n));
  if (!isMessage(await waiting, n)) {
    console.log("the message is wrong");
  }
  await refuses(DOMException, () => ring.read({ signal: AbortSignal.timeout(10) }));
  console.log("no more");
  await k.detach(server);
  return ring;
}

/** What waits for a ring ends with the ikernel. */
async function endRing(k: Ikernel, ring: Ring): Promise<void> {
  const waiting = refuses(IkernelError, () => ring.read());
  await k.destroy();
  await waiting;
  await refuses(IkernelError, () => ring.poll());
  for await (const m of ring) {
    console.log("the ring has", m);
  }
}

/** Has messages come by the rings that notes say. */
async function useNotes(k: Ikernel): Promise<void> {
  sent = 0;
  await k.write({ length: 4 });
  const rings = await k.openRings({ count: ringsCount, size: page, polled: true });
  await k.attach(server);
  const notes = await k.openNotes();
  await fails(k.openNotes());
  const note = (ring: number, key: number) => Buffer.from(new Uint32Array([ring, key]).buffer);
  await refuses(IkernelError, () => rings[0]?.read());
  await refuses(IkernelError, () => notes.deliver([Buffer.alloc(1 << 16)]));
  console.log(`delivered ${await notes.deliver(Array.from({ length: 5000 }, (_, key) => note(0, key)))}`);
  let right = 0;
  for (let key = 0; key < 20; key++) {
    await notes.deliver([note(key % ringsCount, key)]);
    const data = note(0, key).subarray(4);
    await send(k, data);
    right += rings[key % ringsCount]?.poll()?.data.equals(data) ? 1 : 0;
  }
  console.log(`${right} keys by their rings`);
}

async function* polled(ring: Ring): AsyncGenerator<Message> {
  for (;;) {
    const m = ring.poll();
    if (m === undefined) {
      await setImmediate();
    } else {
      yield m;
    }
  }
}

/** Sends messages back, which have their numbers in order. */
async function echo(k: Ikernel, wanted: number, isPolled: boolean): Promise<void> {
  const [ring] = (await k.openRings({ count: 1, size: 1 << 16, polled: isPolled })) as [Ring];
  await k.attach(server);
  console.log(server.address().port);
  let i = 0;
  for await (const { data, from } of isPolled ? polled(ring) : ring) {
    const [number] = new BigUint64Array(Uint8Array.from(data.subarray(0, 8)).buffer);
    if (number !== BigInt(i)) {
      console.log(`got message ${number}, want ${i}`);
    }
    await new Promise((resolve) => server.send(data, from.port, from.address, resolve));
    if (++i === wanted) {
      break;
    }
  }
  console.log("done");
}

/** Prints what a ring has, each time that the daemon has changed it. */
async function records(k: Ikernel): Promise<void> {
  const [ring] = (await k.openRings({ count: 1, size: page, polled: true })) as [Ring];
  for (;;) {
    for (let m = ring.poll(); m !== undefined; m = ring.poll()) {
      console.log(`${m.data} from ${m.from.address} ${m.from.port}`);
    }
    console.log("none");
    const [counts] = await k.ringCounts();
    if (counts?.posted === 0n) {
      return;
    }
  }
}

/** Says what waits for an ikernel learns. */
async function printFault(k: Ikernel, ring: Ring): Promise<void> {
  await ring.read().catch((e: unknown) => console.log(e instanceof IkernelFault ? "the ring ends by a fault" : "the ring ends with the daemon"));
  try {
    const waited = await k.waitFault();
    const fault = await k.fault();
    if (fault?.message === waited.message) {
      console.log(`${fault.code}: ${fault.message}`);
    }
  } catch {
    console.log("no daemon");
  }
}

async function useFault(): Promise<void> {
  const k = await ikernels.create("deserialize");
  const [ring] = (await k.openRings({ count: 1, size: page })) as [Ring];
  const notes = await k.openNotes();
  await k.attach(server);
  if ((await k.fault()) !== undefined) {
    console.log("there is a fault");
  }
  await refuses(DOMException, () => k.waitFault({ signal: AbortSignal.timeout(10) }));
  await fails(notes.deliver([Buffer.from(new Uint32Array([1, ...Array<number>(9).fill(0)]).buffer)])); // a field without a name
  await printFault(k, ring);
  await fails(k.attach(server));
  console.log(`fields ${(await k.read())["fields"]}`);
  await k.destroy();
  const other = await ikernels.create("deserialize");
  await other.attach(server);
  const waiting = refuses(IkernelError, () => other.waitFault());
  await other.destroy();
  await waiting;
  const last = await ikernels.create("deserialize");
  void refuses(Closed, () => last.waitFault()); // the end of the connection ends it
  await refuses(DOMException, () => last.waitFault({ signal: AbortSignal.timeout(10) }));
}

/** Waits until the daemon ends. */
async function outlive(): Promise<void> {
  const k = await ikernels.create("steering");
  const [ring] = (await k.openRings({ count: 1, size: page })) as [Ring];
  console.log("ready");
  await printFault(k, ring);
}

const ikernels = await Ikernels.open(path);
for (const s of [server, client]) {
  s.bind(0, "127.0.0.1");
  await once(s, "listening");
}
if (mode === "fault") {
  await useFault();
} else if (mode === "outlive") {
  await outlive();
} else if (mode === "records") {
  await records(await ikernels.create("steering"));
} else if (mode === "echo") {
  await echo(await ikernels.create("steering"), Number(count), how === "poll");
} else {
  const k = await ikernels.create("steering");
  await endRing(k, await useRing(k));
  await useNotes(await ikernels.create("steering"));
}
if (mode === "use") {
  const [ring] = (await (await ikernels.create("steering")).openRings({ count: 1, size: page })) as [Ring];
  void ring.read();
  await setImmediate();
  process.exit(); // nor does a thread that waits for a ring keep the process from that
}
await ikernels.close();
server.close();
client.close();
