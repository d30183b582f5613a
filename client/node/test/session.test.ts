// SPDX-License-Identifier: Apache-2.0
// What a session sends, and makes of what it gets, on networks good and bad.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DeadlineExceeded, ReplyTooLarge, RequestTooLarge, RPCError, TooLarge, errorOf } from "../src/errors.js";
import { parse } from "../src/packet.js";
import type { Reply } from "../src/session.js";
import { Code, FRAGMENT, Flag, HEADER_LEN, MAX_MESSAGE, MAX_PAYLOAD, Type } from "../src/wire.js";
import { Network, REVISION, Server } from "./network.js";

function text(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i % 251);
}

function requests(network: Network): Uint8Array[] {
  return network.sent.filter((packet) => parse(packet).header.type === Type.Request);
}

test("every length arrives whole", async () => {
  for (const length of [0, 1, 512, 513, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * FRAGMENT, 65 * FRAGMENT + 4, 200 * FRAGMENT]) {
    for (const answer of [0, 1, 5000, 100_000]) {
      const body = new Uint8Array(Buffer.concat([text(answer), text(Math.min(length, 9))]));
      const network = new Network(new Server(() => body), length);
      const [reply] = await network.call({ body: text(length) });
      assert.deepEqual(reply, { body, status: 0, revision: REVISION, resends: 0 }, `${length} bytes, answered by ${answer}`);
      assert.deepEqual([network.stats.resent, network.stats.malformed, network.server.kept.size], [0, 0, 0]);
    }
  }
});

test("what is lost is sent again", async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const network = new Network(new Server(), seed, { loss: 0.2, twice: 0.1 }, { timeout: 60_000 });
    const calls = Array.from({ length: 30 }, (_, n) => ({ body: text(n * 911), options: { replyRoom: 300 * (n % 3) } }));
    const replies = await network.call(...calls);
    replies.forEach((reply, i) => assert.deepEqual((reply as Reply).body, calls[i]!.body));
    assert.equal(replies.reduce((sum, reply) => sum + (reply as Reply).resends, 0), network.stats.resent);
    assert.ok(network.stats.resent > 0 && network.stats.resent < network.stats.sent / 2, JSON.stringify(network.stats));
  }
});

test("resends are marked and spaced", async () => {
  const silence = new Network(new Server(), 1, { loss: 1 });
  const [error] = await silence.call({ body: text(5), options: { deadline: 2000 } });
  assert.ok(error instanceof DeadlineExceeded);
  assert.equal(silence.now, 2000);
  // 0, 20, 60, 140, 300, 620, 1120, 1620 ms
  const flags = silence.sent.map((packet) => parse(packet).header.flags);
  assert.deepEqual(flags, [0, ...Array<number>(7).fill(Flag.Resend)]);
});

test("without resends every packet is sent once", async () => {
  const silence = new Network(new Server(), 1, { loss: 1 }, { timeout: 1000, resend: false });
  const [error] = await silence.call({ body: text(5000) });
  assert.ok(error instanceof DeadlineExceeded);
  assert.equal(requests(silence).length, 4);
});

test("a call without a deadline may take longer than the time-out, as long as something gets through", async () => {
  const network = new Network(new Server(), 3, { delay: 200 }, { timeout: 1000 });
  const [reply] = await network.call({ body: text(1_000_000) });
  assert.equal((reply as Reply).body.length, 1_000_000);
  assert.ok(network.now > 1000);
});

test("no more than 64 packets are sent before something comes back", async () => {
  const silence = new Network(new Server(), 1, { loss: 1 }, { resend: false });
  await silence.call({ body: text(1_000_000), options: { deadline: 1 } });
  assert.equal(requests(silence).length, 64);
});

test("requests are padded for their replies", async () => {
  for (const [replyRoom, padded] of [[0, 512], [100, 100], [4, 5], [9000, MAX_PAYLOAD]] as const) { // prettier-ignore
    const network = new Network(new Server(), 1);
    await network.call({ body: text(5), options: { replyRoom } });
    assert.equal(network.sent[0]!.length - HEADER_LEN, padded);
  }
});

test("what a method's reply took is remembered", async () => {
  const network = new Network(new Server(() => text(900)), 1);
  for (const [method, sent] of [[3, 3], [3, 4], [4, 7]] as const) { // prettier-ignore
    await network.call({ options: { method } });
    assert.equal(network.sent.length, sent); // request, and the first time pull and release
  }
});

test("too little room starts over", async () => {
  const short = (type: number): { code: number; need: number } =>
    type === Type.Request ? { code: Code.TooLarge, need: 1200 } : { code: 0, need: 0 };
  const network = new Network(new Server(undefined, (header) => short(header.type)), 1);
  const [error] = await network.call({});
  assert.ok(error instanceof TooLarge && error.need === 1200);
  assert.deepEqual(network.sent.map((packet) => packet.length - HEADER_LEN), [512, 1200]); // prettier-ignore
});

test("every error code has a class", async () => {
  for (const code of Object.values(Code).filter((v): v is Code => typeof v === "number")) {
    const network = new Network(new Server(undefined, () => ({ code, need: 0 })), 1);
    for (const error of await network.call({}, { body: text(5000) })) {
      assert.ok(error instanceof RPCError && error.code === code && error.name !== "RPCError", String(error));
    }
    assert.equal(network.stats.restarts, code === Code.Stale ? 16 : 0);
  }
  assert.match(errorOf(99).message, /error 99: unknown reason/);
});

test("what is too large is refused", async () => {
  const network = new Network(new Server(() => text(1001)), 1, {}, { maxReply: 1000 });
  assert.ok((await network.call({}))[0] instanceof ReplyTooLarge);
  assert.throws(() => network.session.start(0, 1, new Uint8Array(MAX_MESSAGE + 1), {}, () => {}, () => {}), RequestTooLarge); // prettier-ignore
});

test("a deadline says what the network said during the call", async () => {
  const network = new Network(new Server(), 1, { loss: 1 });
  const said = new Error("nobody there");
  network.session.networkSaid(said, 0);
  assert.equal(((await network.call({ options: { deadline: 100 } }))[0] as Error).cause, said);
  assert.equal(((await network.call({ options: { deadline: 100 } }))[0] as Error).cause, undefined);
});
