// SPDX-License-Identifier: Apache-2.0
// Keys, and the tags that they make. What tagged calls say on the wire is test/conformance's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { BadTag, DeadlineExceeded } from "../src/errors.js";
import { Client } from "../src/index.js";
import { encode, parse } from "../src/packet.js";
import { Session, Stats } from "../src/session.js";
import { sipHash, sipState } from "../src/siphash.js";
import { Key, Tagger } from "../src/tag.js";
import { Code, Flag, MAGIC, MAX_MESSAGE, MAX_PAYLOAD, Type, VERSION, type Header } from "../src/wire.js";

const SECRET = Uint8Array.from({ length: 16 }, (_, i) => i);
const CODED = "AAECAwQFBgcICQoLDA0ODw";
const TEXT = `lnk1:tenant:7:${CODED}`;

// Of the texts without bytes, with byte 0, with bytes 0 and 1 and so on (https://github.com/veorq/SipHash, vectors.h).
const VECTORS = Buffer.from(
  "310e0edd47db6f72fd67dc93c539f8745a4fa9d909806c0d2d7efbd796666785b7877127e09427cf8da699cd64557618cee3fe586e46c9cb37d1018bf50002ab" +
    "6224939a79f5f593b0e4a90bdf82009ef3b9dd94c5bb5d7aa7ad6b22462fb3f4fbe50e86bc8f1e75903d84c02756ea14eef27a8e90ca23f7e545be4961ca29a1",
  "hex",
);

function packet(fields: Partial<Header>, payload: Uint8Array): Buffer {
  const header: Header = {
    magic: MAGIC, version: VERSION, type: Type.Request, flags: 0, code: 0, length: payload.length, workload: 1, revision: 0, request: 0n, index: 0, count: 1,
    messageLen: payload.length, method: 0, deadlineUs: 0, client: 0, sequence: 0, grant: 0, tag: 0n, ...fields,
  }; // prettier-ignore
  return encode(header, payload, 100);
}

test("official vectors", () => {
  for (let n = 0; n < 16; n++) {
    const whole = SECRET.subarray(0, n);
    for (const parts of [[whole], [whole.subarray(0, n - (n % 8)), whole.subarray(n - (n % 8))]]) {
      const { high, low } = sipHash(sipState(SECRET), parts);
      assert.deepEqual([low, high], [VECTORS.readUInt32LE(8 * n), VECTORS.readUInt32LE(8 * n + 4)], `${n} bytes`);
    }
  }
});

test("a key's text is read", () => {
  const key = new Key(` ${TEXT}\n`);
  assert.deepEqual([key.namespace, key.number], ["tenant", 7]);
  assert.equal(new Key(`lnk1:tenant:004294967295:${CODED}`).number, 4294967295);
});

test("what is no key", () => {
  for (const bad of [
    "", "lnk1", `lnk2:tenant:7:${CODED}`, `lnk1::7:${CODED}`, `lnk1:tenant:0:${CODED}`, `lnk1:tenant:-1:${CODED}`, `lnk1:tenant:4294967296:${CODED}`,
    `lnk1:tenant:${"9".repeat(400)}:${CODED}`, TEXT.slice(0, -2), `${TEXT.slice(0, -1)}x`, `${TEXT}==`, `${TEXT}A`, `${TEXT.slice(0, -1)}+`,
    "lnk1:tenant:7:!", `${TEXT}:`, `${TEXT} x`, Buffer.from(TEXT), [TEXT], 7,
  ]) { // prettier-ignore
    assert.throws(() => new Client({ address: "127.0.0.1", key: bad as string }), (e: Error) => e instanceof TypeError && !e.message.includes("AAEC"));
  }
});

test("a secret is not shown", () => {
  const key = new Key(TEXT);
  const options = { depth: Infinity, showHidden: true };
  const shown = [key, key.tagger(true), new Client({ address: "127.0.0.1", key: TEXT })].map((o) => inspect(o, options) + JSON.stringify(o));
  for (const secret of ["AAEC", "0, 1, 2", "00 01 02", "<00", "Int32Array", "Uint8Array"]) {
    assert.ok(!shown.join().includes(secret), shown.join());
  }
});

test("after 2^32 packets, a client has another identity, and is never the anonymous one", () => {
  const tagger = new Tagger(sipState(SECRET), Flag.Tag | Flag.OddKey, 2 ** 32 - 1, 2 ** 32 - 2);
  const seen = new Set<string>();
  for (let i = 0; i < 4; i++) {
    const tagged = packet({}, Buffer.from("payload"));
    tagger.tag([tagged]);
    const { header } = parse(tagged);
    assert.ok(tagger.accepts(header, tagged) && new Key(TEXT).tagger(false).accepts(header, tagged));
    assert.ok(header.client !== 0 && header.flags === (Flag.Tag | Flag.OddKey), inspect(header));
    seen.add(`${header.client} ${header.sequence}`);
  }
  assert.equal(seen.size, 4);
});

test("an error without a tag is told at the deadline", async () => {
  const options = { timeout: 5000, replyRoom: 512, maxReply: MAX_MESSAGE, resend: true };
  const session = new Session(MAX_PAYLOAD, options, new Stats(), new Key(TEXT).tagger(true));
  let error: Error | undefined;
  session.start(0, 1, Buffer.from("hello"), { deadline: 1000 }, () => assert.fail(), (e) => (error = e));
  const { header } = parse(session.poll(0).packets[0]!);
  session.receive(packet({ type: Type.Error, code: Code.BadTag, request: header.request }, new Uint8Array(0)), 100);
  session.poll(500);
  const early = error;
  session.poll(1000);
  assert.ok(early === undefined && (error as unknown) instanceof BadTag && (error as unknown as BadTag).cause instanceof DeadlineExceeded);
});
