// SPDX-License-Identifier: Apache-2.0
// Messages that ikernels send by rings.

import { SocketAddress } from "node:net";
import { setImmediate } from "node:timers/promises";
import { IkernelError } from "./errors.js";
import { library } from "./library.js";
import { readable } from "./readable.js";

const headLength = 48; // of what stands before a message (api/ikernel/wire.go)
const turn = 64; // messages that are read at once

/** An address, as node:dgram has it. */
export interface Endpoint {
  address: string;
  family: "IPv4" | "IPv6";
  port: number;
}

/** What an ikernel sends of a datagram. It is a copy of what the ring has: memory that JavaScript sees must not end with a ring. */
export class Message {
  readonly #bytes: Buffer;

  /** @internal */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get data(): Buffer {
    return this.#bytes.subarray(headLength);
  }

  /** When it was posted, in ns, as process.hrtime.bigint() has it. */
  get time(): bigint {
    return new BigUint64Array(Uint8Array.from(this.#bytes.subarray(0, 8)).buffer)[0] as bigint;
  }

  /** The sender of its datagram. */
  get from(): Endpoint {
    return this.#endpoint(8, 40);
  }

  /** Where its datagram came. */
  get to(): Endpoint {
    return this.#endpoint(24, 42);
  }

  #endpoint(at: number, port: number): Endpoint {
    const end = { port: this.#bytes.readUInt16BE(port) };
    if (this.#bytes[44] === 0) {
      return { address: this.#bytes.subarray(at, at + 4).join("."), family: "IPv4", ...end };
    }
    const words = Array.from({ length: 8 }, (_, i) => this.#bytes.readUInt16BE(at + 2 * i).toString(16));
    return { address: new SocketAddress({ address: words.join(":"), family: "ipv6" }).address, family: "IPv6", ...end };
  }
}

/** @internal What readers of rings know of their ikernel. */
export interface Watch {
  descriptor: number;
  why: () => Promise<Error>; // it ended
}

/** Messages from an ikernel. It ends with that. */
export class Ring implements AsyncIterable<Message> {
  #ring: bigint;
  readonly #descriptor: number;
  readonly #watch: Watch | undefined; // undefined: the ring is polled
  readonly #ended = new AbortController();
  readonly #found = new BigUint64Array(new ArrayBuffer(24)); // struct lambdanic_message: data, length, head
  #isRead = false;
  #taken = 0;

  /** @internal */
  constructor(ring: bigint, watch: Watch | undefined) {
    this.#ring = ring;
    this.#watch = watch;
    this.#descriptor = library().ringDescriptor(ring);
  }

  /** @internal The library frees the ring when this has returned. */
  end(): void {
    this.#ring = 0n;
    this.#ended.abort();
  }

  /** The next message, if there is one already. */
  poll(): Message | undefined {
    if (this.#ring === 0n) {
      throw new IkernelError("the ikernel is destroyed");
    }
    const c = library();
    if (c.pollRing(this.#ring, this.#found) !== 1) {
      return undefined;
    }
    const [, length, head] = this.#found as unknown as [bigint, bigint, bigint];
    const bytes = Buffer.allocUnsafe(headLength + Number(length));
    c.copyFrom(bytes, head, bytes.length);
    c.releaseRing(this.#ring);
    return new Message(bytes);
  }

  /**
   * Waits for the next message. When none is left, it fails with IkernelFault if the ikernel gave up, and IkernelError if the daemon ended.
   * With a signal that aborts, it fails with its reason: `AbortSignal.timeout(100)` waits for 100 ms.
   */
  async read(options: { signal?: AbortSignal } = {}): Promise<Message> {
    const watch = this.#watch;
    if (watch === undefined) {
      throw new IkernelError("the ring is polled: use poll, or open it without polled");
    }
    if (this.#isRead) {
      throw new IkernelError("the ring is read already: wait for that");
    }
    this.#isRead = true;
    try {
      if (++this.#taken % turn === 0) {
        await setImmediate(); // also the event loop has a turn, however many messages there are
      }
      for (let found: number | undefined; ; ) {
        options.signal?.throwIfAborted();
        const message = this.poll();
        if (message !== undefined) {
          return message;
        }
        if (found === watch.descriptor) {
          throw await watch.why();
        }
        found = await readable([this.#descriptor, watch.descriptor], [this.#ended.signal, options.signal]);
      }
    } finally {
      this.#isRead = false;
    }
  }

  /** All messages, as they come, until the ring ends. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, void> {
    while (this.#ring !== 0n) {
      let message: Message;
      try {
        message = await this.read();
      } catch (e) {
        if (this.#ring === 0n) {
          return;
        }
        throw e;
      }
      yield message;
    }
  }
}
