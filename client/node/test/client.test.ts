// SPDX-License-Identifier: Apache-2.0
// The client on real sockets.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";

import { splitAddress } from "../src/endpoint.js";
import { Client, Closed, DeadlineExceeded, Gateway, GatewayError, NoSuchFunction } from "../src/index.js";
import { Server, serving } from "./network.js";

test("calls", async () => {
  for (const host of ["127.0.0.1", "::1"]) {
    await serving(new Server(), async (address) => {
      const client = new Client({ address });
      const bodies = Array.from({ length: 100 }, (_, n) => Buffer.alloc(n * 50, n));
      const replies = await Promise.all(bodies.map((body) => client.call(1, body)));
      replies.forEach((reply, i) => assert.deepEqual(Buffer.from(reply.body), bodies[i]));
      assert.equal(client.stats.malformed, 0);
      await client.close();
    }, host);
  }
});

test("deadline", async () => {
  await serving(undefined, async (address) => {
    const client = new Client({ address });
    const error = await client.call(1, undefined, { deadline: 50 }).catch((e: unknown) => e);
    assert.ok(error instanceof DeadlineExceeded && error.cause === undefined && error.name === "DeadlineExceeded");
    await client.close();
  });
});

test("a refusal is the cause", async () => {
  await serving(undefined, async (address) => {
    // Nothing listens here: a socket bound to any port of any address does not get a port that is taken at another address.
    const client = new Client({ address: address.replace("127.0.0.1", "127.0.0.42") });
    let cause: unknown;
    for (let deadline = 50; cause === undefined && deadline < 30_000; deadline *= 2) { // on a busy machine, a call may end before it hears anything
      const error = await client.call(1, undefined, { deadline }).catch((e: unknown) => e);
      assert.ok(error instanceof DeadlineExceeded);
      cause = error.cause;
    }
    assert.match(String(cause), /ECONNREFUSED/);
    await client.close();
  });
});

test("a signal gives a call up", async () => {
  await serving(undefined, async (address) => {
    const client = new Client({ address });
    const aborts = new AbortController();
    const call = client.call(1, undefined, { signal: aborts.signal });
    setImmediate(() => aborts.abort(new Error("no longer")));
    await assert.rejects(call, /no longer/);
    await assert.rejects(client.call(1, undefined, { signal: aborts.signal }), /no longer/);
    await client.close();
  });
});

test("closing ends calls", async () => {
  await serving(undefined, async (address) => {
    const client = new Client({ address });
    const call = client.call(1);
    setImmediate(() => void client.close());
    await assert.rejects(call, Closed);
    await assert.rejects(client.call(1), Closed);
  });
});

test("misuse", async () => {
  assert.throws(() => new Client({}), TypeError);
  const numbers = new Client({ address: "127.0.0.1" });
  await assert.rejects(numbers.call("name"), TypeError);
  const names = new Client({ gateway: "127.0.0.1:1" });
  await assert.rejects(names.call(1), TypeError);
  await assert.rejects(names.call("name"), GatewayError);
  assert.throws(() => new Client({ address: "[::1" }), TypeError);
});

test("addresses", () => {
  for (const [address, host, port] of [
    ["host", "host", 4370], ["host:1", "host", 1], ["10.0.0.2:99", "10.0.0.2", 99],
    ["::1", "::1", 4370], ["[::1]", "::1", 4370], ["[::1]:5", "::1", 5],
  ] as const) { // prettier-ignore
    assert.deepEqual(splitAddress(address, 4370), { host, port }, address);
  }
  for (const address of ["", ":1", "[::1", "[::1]x", "host:x", "[]:1"]) {
    assert.throws(() => splitAddress(address, 4370), TypeError, address);
  }
  for (const address of ["host:0", "host:65536", `[::1]:${"9".repeat(400)}`]) {
    assert.throws(() => splitAddress(address, 4370), RangeError, address);
  }
});

/** Gives everyone the same answer while f runs. */
async function answering(text: string, f: (address: string, asked: string[]) => Promise<void>): Promise<void> {
  const asked: string[] = [];
  const server = createServer((connection: Socket) => {
    connection.once("data", (request) => {
      asked.push(request.toString());
      connection.end(text);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await f(`127.0.0.1:${(server.address() as { port: number }).port}`, asked);
  } finally {
    server.close();
  }
}

const FUNCTION = '{"name": "echo", "workload": 9, "revision": 2, "endpoint": "[::1]:4370", "labels": {"workload": "1"}}';

test("a gateway is asked by HTTP", async () => {
  await answering(`HTTP/1.1 200 OK\r\n\r\n${FUNCTION}`, async (address, asked) => {
    const gateway = new Gateway(address, { credentials: "admin:a:b", namespace: "a b" });
    assert.deepEqual(await gateway.lookUp("e/c"), { name: "e/c", workload: 9, revision: 2, address: "[::1]:4370" });
    assert.match(asked[0]!, /^GET \/system\/function\/e%2Fc\?namespace=a%20b HTTP\/1.1\r\n/);
    assert.match(asked[0]!, /\r\nAuthorization: Basic YWRtaW46YTpi\r\n/);
  });
});

test("what is no answer of a gateway is refused", async () => {
  for (const text of [
    "", "ready\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n[]", "HTTP/1.1 200 OK\r\n\r\n{}", "HTTP/1.1 200 OK\r\n\r\nnull",
    `HTTP/1.1 200 OK\r\n\r\n${FUNCTION.slice(0, -1)}`, `HTTP/1.1 200 OK\r\n\r\n${FUNCTION.replace(": 9", ": 4294967296")}`,
    `HTTP/1.1 200 OK\r\n\r\n${FUNCTION.replace(": 9", ': "9"')}`, `HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n${FUNCTION}`,
    `HTTP/1.1 500 No\r\n\r\n${FUNCTION}`,
  ]) { // prettier-ignore
    await answering(text, async (address) => {
      const error = await new Gateway(address).lookUp("echo").catch((e: unknown) => e);
      assert.equal((error as Error).constructor, GatewayError, text);
    });
  }
  await answering("HTTP/1.1 404 Not Found\r\n\r\n", async (address) => {
    await assert.rejects(new Gateway(address).lookUp("echo"), NoSuchFunction);
  });
});

test("a gateway's answer is remembered until it turns out to be stale", async () => {
  await answering(`HTTP/1.1 200 OK\r\n\r\n${FUNCTION}`, async (address, asked) => {
    const gateway = new Gateway(address);
    const [first, same] = await Promise.all([gateway.find("echo"), gateway.find("echo")]);
    assert.equal(first, same);
    assert.equal(asked.length, 1);
    assert.notEqual(await gateway.find("echo", first), first);
    gateway.forget("echo");
    await gateway.find("echo");
    assert.equal(asked.length, 3);
  });
});
