// SPDX-License-Identifier: Apache-2.0
// One client of the benchmark suite `clients`: bench.js WAY ADDRESS WORKLOAD METHOD BODY WANT MILLISECONDS. It calls in a closed loop, and
// prints the calls, the nanoseconds that they took, and the 50th, 99th and 99.9th percentile of one round.
//
//   raw     a bare connected socket, which sends the same packet again and again and looks at no answer
//   client  Client
//   raw64, client64: rounds of 64 at once

import { createSocket } from "node:dgram";
import { once } from "node:events";

import { splitAddress } from "../src/endpoint.js";
import { Client } from "../src/index.js";
import { encode } from "../src/packet.js";
import { MAGIC, PORT, Type, VERSION } from "../src/wire.js";

const ROOM = 512;

interface Way {
  round(): Promise<void>;
  close(): void;
}

async function raw(address: string, workload: number, method: number, body: Buffer, many: number): Promise<Way> {
  const { host, port } = splitAddress(address, PORT);
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.connect(port, host);
  await once(socket, "connect");
  const header = {
    magic: MAGIC, version: VERSION, type: Type.Request, flags: 0, code: 0, length: body.length, workload, revision: 0, request: 1n,
    index: 0, count: 1, messageLen: body.length, method, deadlineUs: 0, client: 0, sequence: 0, grant: 0, tag: 0n,
  }; // prettier-ignore
  const packet = encode(header, body, ROOM);
  let missing = 0;
  let done = (): void => {};
  socket.on("message", () => {
    if (--missing === 0) {
      done();
    }
  });
  const round = (): Promise<void> =>
    new Promise((resolve) => {
      missing = many;
      done = resolve;
      for (let i = 0; i < many; i++) {
        socket.send(packet);
      }
    });
  return { round, close: () => socket.close() };
}

function calls(address: string, workload: number, method: number, body: Buffer, want: Buffer, many: number): Way {
  const client = new Client({ address });
  const call = async (): Promise<void> => {
    const reply = await client.call(workload, body, { method });
    if (reply.status !== 0 || !want.equals(reply.body)) {
      throw new Error(`wrong answer: status ${reply.status}, ${reply.body.length} bytes`);
    }
  };
  const round = many === 1 ? call : async (): Promise<void> => void (await Promise.all(Array.from({ length: many }, call)));
  return { round, close: () => void client.close() };
}

const [way, address, workload, method, body, want, milliseconds] = process.argv.slice(2) as [string, string, string, string, string, string, string]; // prettier-ignore
const many = way.endsWith("64") ? 64 : 1;
const target = [address, Number(workload), Number(method), Buffer.from(body)] as const;
const { round, close } = way.startsWith("raw") ? await raw(...target, many) : calls(...target, Buffer.from(want), many);
for (let i = 0; i < 100; i++) {
  await round(); // until it is compiled
}
const times: number[] = [];
const start = process.hrtime.bigint();
for (let last = start, now = start; now - start < BigInt(milliseconds) * 1_000_000n; last = now) {
  await round();
  now = process.hrtime.bigint();
  times.push(Number(now - last));
}
const took = process.hrtime.bigint() - start;
times.sort((a, b) => a - b);
console.log(times.length * many, String(took), ...[0.5, 0.99, 0.999].map((part) => times[Math.floor(times.length * part)]));
close();
