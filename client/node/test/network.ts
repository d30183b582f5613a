// SPDX-License-Identifier: Apache-2.0
// A server and a bad network in memory, with a clock of their own, after docs/protocol.md.

import { createSocket } from "node:dgram";
import { once } from "node:events";

import { encode, parse, placement } from "../src/packet.js";
import { Session, Stats, type CallOptions, type Options, type Reply } from "../src/session.js";
import { Code, Flag, HEADER_LEN, MAX_MESSAGE, MAX_PAYLOAD, Type, type Header } from "../src/wire.js";

export const REVISION = 7;
const NOTHING = new Uint8Array(0);

interface Kept {
  body: Uint8Array;
  missing: Set<number>;
}

/** Answers whole messages, which it keeps until they are released. */
export class Server {
  readonly kept = new Map<bigint, Kept>();

  constructor(
    readonly handle: (body: Uint8Array) => Uint8Array = (body) => body,
    readonly refuse: (header: Header) => { code: number; need: number } = () => ({ code: 0, need: 0 }),
  ) {}

  answer(datagram: Uint8Array): Uint8Array | undefined {
    const { header, payload } = parse(datagram);
    const room = datagram.length - HEADER_LEN;
    const { code, need } = this.refuse(header);
    if (code !== 0) {
      return encode({ ...header, type: Type.Error, code, length: 0, index: 0, count: 1, messageLen: need }, NOTHING, 0);
    }
    if (header.type === Type.Ack) {
      this.kept.delete(header.request);
      return undefined;
    }
    if (header.type === Type.Pull) {
      if (header.count === 1 || header.messageLen > room || header.index >= header.count) {
        return encode({ ...header, type: Type.Error, code: Code.Malformed, length: 0, index: 0, count: 1 }, NOTHING, 0);
      }
      const body = this.kept.get(header.request)?.body ?? payload;
      return this.window(header, this.handle(body), header.index, header.messageLen);
    }
    return this.request(header, payload, room);
  }

  private request(header: Header, payload: Uint8Array, room: number): Uint8Array | undefined {
    const { offset } = placement(header);
    if (header.count === 1) {
      return this.window(header, this.handle(payload), 0, room);
    }
    let kept = this.kept.get(header.request);
    if (kept === undefined) {
      kept = { body: new Uint8Array(header.messageLen), missing: new Set(Array(header.count).keys()) };
      this.kept.set(header.request, kept);
    }
    kept.body.set(payload, offset);
    kept.missing.delete(header.index);
    if (kept.missing.size > 0) {
      return (header.flags & Flag.AckWanted) !== 0 ? this.acknowledge(header, kept) : undefined;
    }
    return this.window(header, this.handle(kept.body), 0, room);
  }

  private acknowledge(header: Header, kept: Kept): Uint8Array {
    const base = header.index - (header.index % 64);
    let bitmap = 0n;
    for (let i = 0; i < 64 && base + i < header.count; i++) {
      if (!kept.missing.has(base + i)) {
        bitmap |= 1n << BigInt(i);
      }
    }
    const payload = Buffer.alloc(8);
    payload.writeBigUInt64BE(bitmap);
    return encode({ ...header, type: Type.Ack, flags: 0, length: 8, revision: REVISION }, payload, 0);
  }

  private window(header: Header, reply: Uint8Array, index: number, size: number): Uint8Array {
    const count = size > 0 ? Math.max(1, Math.ceil(reply.length / size)) : 1;
    const part = reply.subarray(index * size, (index + 1) * size);
    const fields = { type: Type.Response, flags: 0, code: 0, revision: REVISION, index, count };
    return encode({ ...header, ...fields, length: part.length, messageLen: reply.length }, part, 0);
  }
}

/** Numbers from 0 to 1, the same for the same seed (George Marsaglia, Xorshift RNGs, 2003). */
function xorshift(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export interface Faults {
  loss?: number;
  twice?: number;
  delay?: number; // ms
}

/**
 * Carries datagrams between a session and a server within a delay, or never: with the probability loss. Where some are lost, the others
 * come in disorder.
 */
export class Network {
  readonly stats = new Stats();
  readonly session: Session;
  readonly sent: Uint8Array[] = [];
  now = 0;
  private readonly random: () => number;
  private underWay: { at: number; deliver: () => void }[] = [];

  constructor(
    readonly server: Server,
    seed: number,
    private readonly faults: Faults = {},
    options: Options = {},
  ) {
    this.random = xorshift(seed);
    const defaults = { timeout: 5000, replyRoom: 512, maxReply: MAX_MESSAGE, resend: true };
    this.session = new Session(MAX_PAYLOAD, { ...defaults, ...options }, this.stats);
  }

  /** Makes calls at once, and advances the clock until all are done. */
  async call(...calls: { body?: Uint8Array; options?: CallOptions }[]): Promise<(Reply | Error)[]> {
    let open = calls.length;
    const outcomes = calls.map(({ body, options }) => {
      const outcome = new Promise<Reply>((resolve, reject) => {
        const done = (): number => open--;
        this.session.start(this.now, 1, body ?? NOTHING, options ?? {}, (r) => (done(), resolve(r)), (e) => (done(), reject(e))); // prettier-ignore
      });
      return outcome.catch((e: unknown) => e as Error);
    });
    for (;;) {
      const { packets, wake } = this.session.poll(this.now);
      for (const packet of packets) {
        this.sent.push(packet);
        this.carry(() => this.arrive(packet));
      }
      this.underWay.sort((a, b) => a.at - b.at);
      const [next] = this.underWay;
      if (open === 0 && next === undefined) {
        return Promise.all(outcomes);
      }
      if (next === undefined || wake < next.at) {
        this.now = Math.max(this.now, wake);
      } else {
        this.now = next.at;
        this.underWay.shift();
        next.deliver();
      }
    }
  }

  private arrive(packet: Uint8Array): void {
    const answer = this.server.answer(packet);
    if (answer !== undefined) {
      this.carry(() => this.session.receive(answer, this.now));
    }
  }

  private carry(deliver: () => void): void {
    const { loss = 0, twice = 0, delay = 2 } = this.faults;
    for (let copies = this.random() < twice ? 2 : 1; copies > 0; copies--) {
      if (this.random() >= loss) {
        this.underWay.push({ at: this.now + delay * (loss > 0 ? 0.5 + this.random() : 1), deliver });
      }
    }
  }
}

/** Serves on loopback while f runs. Without a server, nothing is answered. */
export async function serving(server: Server | undefined, f: (address: string) => Promise<void>, host = "127.0.0.1"): Promise<void> {
  const socket = createSocket(host === "::1" ? "udp6" : "udp4");
  socket.on("message", (datagram, peer) => {
    const answer = server?.answer(datagram);
    if (answer !== undefined) {
      socket.send(answer, peer.port, peer.address);
    }
  });
  socket.bind(0, host);
  await once(socket, "listening");
  try {
    await f(`${host === "::1" ? "[::1]" : host}:${socket.address().port}`);
  } finally {
    socket.close();
  }
}
