// SPDX-License-Identifier: Apache-2.0
// Bad arguments are refused before a call begins, whichever way they come, and other calls of the same client go on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";

import { Client, Gateway, type CallOptions, type ClientOptions, type GatewayOptions } from "../src/index.js";
import { Code } from "../src/wire.js";
import { Server, serving } from "./network.js";

const NO_NUMBER = ["1", null, true, 1n, [1], {}];
const NOT_WHOLE = [-1, 1.5, -0.5, 2 ** 32, NaN, Infinity, -Infinity];
const NO_TIME = [0, -1, -0.1, NaN, Infinity, -Infinity];
const NO_TEXT = [1, null, true, ["a"], {}, "\ud800"];
const NO_BYTES = ["text", 1, null, [1], {}, new ArrayBuffer(4), new Uint16Array(2), new DataView(new ArrayBuffer(4))];
const NO_FLAG = ["no", 1, null, {}];

type Table = [string, unknown[], typeof TypeError | typeof RangeError][];

const CALLS: Table = [
  ["method", NO_NUMBER, TypeError], ["method", NOT_WHOLE, RangeError],
  ["deadline", NO_NUMBER, TypeError], ["deadline", NO_TIME, RangeError],
  ["replyRoom", NO_NUMBER, TypeError], ["replyRoom", NOT_WHOLE, RangeError],
  ["once", NO_FLAG, TypeError], ["signal", ["stop", 1, null, {}], TypeError],
]; // prettier-ignore

const GATEWAYS: Table = [
  ["credentials", NO_TEXT, TypeError], ["namespace", NO_TEXT, TypeError],
  ["timeout", NO_NUMBER, TypeError], ["timeout", NO_TIME, RangeError],
]; // prettier-ignore

const CLIENTS: Table = [
  ...GATEWAYS,
  ["address", [...NO_TEXT, "", "host:x", "[::1"], TypeError], ["address", ["host:0", "host:65536"], RangeError],
  ["gateway", [...NO_TEXT, "", "unix:", "host:x", "http://", "https://host:1", "http:///x"], TypeError], ["gateway", ["host:65536"], RangeError],
  ["replyRoom", NO_NUMBER, TypeError], ["replyRoom", NOT_WHOLE, RangeError],
  ["maxReply", NO_NUMBER, TypeError], ["maxReply", NOT_WHOLE, RangeError],
  ["resend", NO_FLAG, TypeError], ["tagPayload", NO_FLAG, TypeError], ["key", [...NO_TEXT, ""], TypeError],
]; // prettier-ignore

/** Every bad option by itself. */
function* bad(table: Table): Generator<[object, typeof TypeError | typeof RangeError]> {
  for (const [name, values, error] of table) {
    for (const value of values) {
      yield [{ [name]: value }, error];
    }
  }
}

test("clients", () => {
  for (const [options, error] of bad(CLIENTS)) {
    assert.throws(() => new Client({ address: "127.0.0.1", ...options } as ClientOptions), error, JSON.stringify(Object.keys(options)));
  }
  for (const [options, error] of bad(GATEWAYS)) {
    assert.throws(() => new Gateway("127.0.0.1:1", options as GatewayOptions), error);
  }
  for (const options of [undefined, null, 1, "127.0.0.1"]) {
    assert.throws(() => new Client(options as unknown as ClientOptions), TypeError);
  }
});

test("names", async () => {
  const gateway = new Gateway("127.0.0.1:1");
  const client = new Client({ gateway: "127.0.0.1:1" });
  for (const name of [...NO_TEXT, ""]) {
    await assert.rejects(gateway.find(name as string), TypeError);
    await assert.rejects(gateway.lookUp(name as string), TypeError);
    await assert.rejects(client.call(name as string), TypeError);
  }
  await client.close();
});

test("undefined is the default", async () => {
  await serving(new Server(), async (address) => {
    const client = new Client({ address, timeout: undefined, replyRoom: undefined, maxReply: undefined, resend: undefined, key: undefined, tagPayload: undefined } as unknown as ClientOptions);
    const options = { method: undefined, deadline: undefined, replyRoom: undefined, once: undefined, signal: undefined };
    const reply = await client.call(1, undefined, options as unknown as CallOptions);
    assert.equal(reply.body.length, 0);
    await client.close();
  });
});

test("calls go on while bad ones come", async () => {
  let silent = true;
  const server = new Server();
  const answer = server.answer.bind(server);
  server.answer = (datagram) => (silent ? undefined : answer(datagram));
  await serving(server, async (address) => {
    const client = new Client({ address });
    const call = client.call(1, Buffer.from("hello"), { deadline: 60_000 });
    for (const [options, error] of bad(CALLS)) {
      await assert.rejects(client.call(1, undefined, options as CallOptions), error);
    }
    for (const target of [...NO_NUMBER.filter((v) => typeof v !== "string"), undefined]) {
      await assert.rejects(client.call(target as number), TypeError);
    }
    for (const target of NOT_WHOLE) {
      await assert.rejects(client.call(target), RangeError);
    }
    for (const body of NO_BYTES) {
      await assert.rejects(client.call(1, body as Uint8Array), TypeError);
    }
    for (const options of [null, 1, "deadline"]) {
      await assert.rejects(client.call(1, undefined, options as CallOptions), TypeError);
    }
    assert.ok(client.stats.calls <= 1);
    silent = false;
    assert.equal(Buffer.from((await call).body).toString(), "hello");
    await client.close();
  });
});

const USES: [string, (body: Uint8Array<ArrayBuffer>) => void][] = [
  ["left alone", (): void => undefined],
  ["overwritten", (body): void => void body.fill(0)],
  ["cloned away", (body): void => void structuredClone(body, { transfer: [body.buffer] })],
  ["posted", (body): void => {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(body, [body.buffer]);
    port2.close();
  }],
]; // prettier-ignore

test("a call keeps what it began with", async () => {
  for (const [use, done] of USES) {
    for (const length of [5, 10_000]) {
      let silent = true;
      let stale = 1;
      const methods = new Set<number>();
      const server = new Server(undefined, (header) => {
        methods.add(header.method);
        return { code: stale-- > 0 ? Code.Stale : 0, need: 0 }; // the call starts over
      });
      const answer = server.answer.bind(server);
      server.answer = (datagram) => (silent ? undefined : answer(datagram));
      await serving(server, async (address) => {
        const client = new Client({ address });
        const body = new Uint8Array(length).fill(7);
        const options: CallOptions = { method: 3, deadline: 60_000 };
        const call = client.call(1, body, options);
        done(body);
        Object.assign(options, { method: "none", replyRoom: "none" });
        while (client.stats.sent === 0) {
          await setImmediate();
        }
        silent = false;
        assert.deepEqual((await call).body, new Uint8Array(length).fill(7), `${use}, ${length} bytes`);
        assert.deepEqual([...methods], [3], use);
        await client.close();
      });
    }
  }
});

test("a body that was given away before is refused", async () => {
  await serving(new Server(), async (address) => {
    const client = new Client({ address });
    const body = new Uint8Array(5);
    structuredClone(body, { transfer: [body.buffer] });
    await assert.rejects(client.call(1, body), TypeError);
    await client.close();
  });
});
