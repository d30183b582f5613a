// SPDX-License-Identifier: Apache-2.0
// Tags packets by a key of a namespace, and checks the tags of answers (docs/protocol.md, "Tags").

import { randomBytes } from "node:crypto";

import { sipHash, sipState } from "./siphash.js";
import { Flag, HEADER_LEN, type Header } from "./wire.js";

const TAGGED_LEN = HEADER_LEN - 8; // how much of a header its tag covers: all before it
const [FLAGS, LENGTH, CLIENT, SEQUENCE] = [4, 6, 44, 48]; // where the fields are in a packet
const TAG_FLAGS = Flag.Tag | Flag.TagPayload | Flag.OddKey;
const KEY = /^lnk1:([^:]+):0*([1-9]\d{0,9}):([A-Za-z0-9_-]{22})$/; // the secret is of 16 bytes

/** A secret of a namespace. Nothing that shows it shows the secret. */
export class Key {
  readonly namespace: string;
  readonly number: number;
  readonly #secret: Uint8Array;

  /** Reads a key's text, with white space around it. */
  constructor(text: unknown) {
    if (typeof text !== "string") {
      throw new TypeError(`key is of type ${typeof text}: give a string`);
    }
    const [, namespace, number, coded] = KEY.exec(text.trim()) ?? [];
    const secret = Buffer.from(coded ?? "", "base64url");
    if (namespace === undefined || Number(number) > 0xffffffff || secret.toString("base64url") !== coded) {
      throw new TypeError("not a key: it is one line, lnk1:NAMESPACE:NUMBER:SECRET, as `lambdanic namespace key add` writes it");
    }
    this.namespace = namespace;
    this.number = Number(number);
    this.#secret = secret;
  }

  /** Tags the packets of one socket: header and, with payload, what is behind it. */
  tagger(payload: boolean): Tagger {
    const flags = Flag.Tag | (payload ? Flag.TagPayload : 0) | (this.number % 2 === 1 ? Flag.OddKey : 0);
    return new Tagger(sipState(this.#secret), flags, randomBytes(4).readUInt32BE());
  }
}

export class Tagger {
  readonly #state: Int32Array; // what a tag begins with

  constructor(
    state: Int32Array,
    private readonly flags: number,
    private client: number, // 0 is the anonymous one
    private sequence = 0,
  ) {
    this.#state = state;
    this.client ||= 2 ** 31;
  }

  /** Gives each packet the next sequence number, and its tag. */
  tag(packets: Buffer[]): void {
    for (const packet of packets) {
      this.count();
      packet[FLAGS]! |= this.flags;
      packet.writeUInt32BE(this.client, CLIENT);
      packet.writeUInt32BE(this.sequence, SEQUENCE);
      const { high, low } = this.of(packet);
      packet.writeUInt32BE(high, TAGGED_LEN);
      packet.writeUInt32BE(low, TAGGED_LEN + 4);
    }
  }

  /** With each overflow of the sequence numbers, the client gets another identity. */
  private count(): void {
    this.sequence = (this.sequence + 1) % 2 ** 32;
    if (this.sequence === 0) {
      this.client = (this.client + 1) % 2 ** 32 || 2 ** 31;
    }
  }

  /** Whether a packet with this header is tagged as the requests are. */
  accepts(header: Header, packet: Uint8Array): boolean {
    if ((header.flags & TAG_FLAGS) !== this.flags) {
      return false;
    }
    const { high, low } = this.of(packet);
    return header.tag === (BigInt(high) << 32n | BigInt(low));
  }

  private of(packet: Uint8Array): { high: number; low: number } {
    const payload = this.flags & Flag.TagPayload ? (packet[LENGTH]! << 8) | packet[LENGTH + 1]! : 0;
    return sipHash(this.#state, [packet.subarray(0, TAGGED_LEN), packet.subarray(HEADER_LEN, HEADER_LEN + payload)]);
  }
}
