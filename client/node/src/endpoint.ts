// SPDX-License-Identifier: Apache-2.0
// A UDP socket that is connected to a server, and hears only that; and the calls on it.

import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";

import { Session, type CallOptions, type Call, type Options, type Reply, type Stats } from "./session.js";
import type { Key } from "./tag.js";
import { MAX_PAYLOAD, PORT } from "./wire.js";

const BUFFER = 4 << 20; // bytes
const LONGEST_TIMEOUT = 2 ** 31 - 1; // ms that setTimeout takes

/** Splits HOST, HOST:PORT, [IPv6]:PORT, [IPv6] or IPv6. port is the default. */
export function splitAddress(address: string, port: number): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(address) ?? /^([0-9a-fA-F:.%]*:[^[\]]*:[^[\]]*)$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined) {
    throw new TypeError(`no such address: ${JSON.stringify(address)}: give HOST, HOST:PORT or [IPv6]:PORT`);
  }
  const given = match?.[3] === undefined ? port : Number(match[3]);
  if (given < 1 || given > 65535) {
    throw new RangeError(`no such port: ${JSON.stringify(address)}: give one from 1 to 65535`);
  }
  return { host, port: given };
}

/** Ends a call whose function has moved. */
export class Moved extends Error {
  constructor(readonly call: Call) {
    super("the function has moved");
  }
}

/** Where a call by a function's name goes. */
export interface Whereabouts {
  /** The same call where the function was before. */
  before: Call | undefined;
  /** Asks whether the function has moved. The promise is never rejected. */
  ask(): Promise<boolean>;
}

/** The calls towards one server have their turn when something arrives, when a packet has to be sent again, and when calls were begun. */
export class Endpoint {
  private timer: NodeJS.Timeout | undefined;
  private due = Infinity; // when the timer is set to
  private scheduled = false; // a turn is scheduled
  private closed = false;

  private constructor(
    private readonly socket: Socket,
    private readonly session: Session,
  ) {
    socket.on("message", (datagram) => {
      session.receive(datagram, performance.now());
      this.turn();
    });
    // An ICMP message came back. Calls go on, as the lambda's server may be about to come back.
    socket.on("error", (error) => this.networkSaid(error));
  }

  /** by is what packets are tagged by, if by anything: a key, and over payloads or not. */
  static async open(address: string, options: Required<Options>, stats: Stats, by?: { key: Key; payload: boolean }): Promise<Endpoint> {
    const { host, port } = splitAddress(address, PORT);
    const found = await lookup(host);
    const socket = createSocket({ type: found.family === 6 ? "udp6" : "udp4", recvBufferSize: BUFFER, sendBufferSize: BUFFER });
    try {
      socket.connect(port, found.address);
      await once(socket, "connect"); // rejects on error
    } catch (e) {
      socket.close();
      throw e;
    }
    // IPv6's header is 20 bytes longer.
    const single = found.family === 4 || found.address.toLowerCase().startsWith("::ffff:") ? MAX_PAYLOAD : MAX_PAYLOAD - 20;
    return new Endpoint(socket, new Session(single, options, stats, by?.key.tagger(by.payload)));
  }

  /** where, if given, is asked where the function is now. The promise is rejected with a Moved if the function has moved. */
  async call(workload: number, body: Uint8Array, options: CallOptions, where?: Whereabouts): Promise<Reply> {
    const { signal } = options;
    signal?.throwIfAborted();
    let giveUp = (): void => {};
    try {
      return await new Promise((resolve, reject) => {
        const onSilent = where && ((): void => void where.ask().then((moved) => moved && this.send(this.session.cancel(call, new Moved(call)))));
        const move = { before: where?.before, onSilent };
        const call = this.session.start(performance.now(), workload, body, options, resolve, reject, move);
        giveUp = () => this.send(this.session.cancel(call, signal?.reason));
        signal?.addEventListener("abort", giveUp);
        if (!this.scheduled) {
          this.scheduled = true;
          queueMicrotask(() => this.turn()); // together with calls that are begun in the same task
        }
      });
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  private turn(): void {
    this.scheduled = false;
    if (this.closed) {
      return;
    }
    const { packets, wake } = this.session.poll(performance.now());
    this.send(packets);
    if (wake < this.due) {
      clearTimeout(this.timer);
      this.due = wake;
      this.timer = setTimeout(() => {
        this.due = Infinity;
        this.turn();
      }, Math.min(wake - performance.now(), LONGEST_TIMEOUT));
    }
  }

  private networkSaid(error: Error): void {
    this.session.networkSaid(error, performance.now());
    this.turn();
  }

  /** Packets that the kernel does not take count as lost on the way. */
  private send(packets: Buffer[]): void {
    for (const packet of packets) {
      this.socket.send(packet, (error) => {
        if (error !== null) {
          this.networkSaid(error);
        }
      });
    }
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.session.close();
    this.socket.close();
  }
}
