// SPDX-License-Identifier: Apache-2.0
// Ikernels for an application's own UDP sockets: accelerators in the NIC that get a socket's datagrams before the application does. They
// come by the C library, liblambdanic, as Node.js itself can hand no socket over to another process.

import type { Socket } from "node:dgram";
import { closeSync } from "node:fs";
import type { Server, Socket as Connection } from "node:net";
import { MAX_UINT32, checkFlag, checkWhole } from "./arguments.js";
import { Closed, IkernelError, IkernelFault, RegisterDiffers } from "./errors.js";
import { differs, faulted, library, maxRegisters, type FaultStruct, type Pointer, type Struct } from "./library.js";
import { Notes } from "./notes.js";
import { readable } from "./readable.js";
import { Ring, type Watch } from "./ring.js";

export { Notes } from "./notes.js";
export { Shard } from "./parity.js";
export { Ring, type Endpoint, type Message } from "./ring.js";

/** Where the daemon of this machine serves applications. */
export const IKERNEL_SOCKET = "/run/lambdanic/default/ikernel.sock";

/** All registers of an ikernel. One of unsigned numbers is converted as by BigInt.asIntN(64). */
export type Registers = Record<string, bigint>;

/** Values for registers. */
export type Values = Record<string, number | bigint>;

const maxRings = 128; // of an ikernel

/** A socket of node:dgram or node:net, or a file descriptor. */
export type Attachable = Socket | Connection | Server | number;

/** What rings an ikernel gets. */
export interface Rings {
  /** such as one for each CPU */
  count: number;
  /** bytes of each: a power of two, of one page at least. What is not yet read takes its place. */
  size: number;
  /** The ikernel wakes nobody, which costs it time: the application uses poll alone. */
  polled?: boolean;
}

/** What more is to be said of an ikernel. */
export interface CreateOptions {
  /** In whose share and quotas it is kept, and to which it is charged. It has to be there. Then the ikernel takes UDP sockets alone. */
  namespace?: string;
}

/** A ring's messages. */
export interface RingCounts {
  posted: bigint;
  /** The ring was full, or the message longer than it. */
  refused: bigint;
}

/** An application's connection to the daemon of this machine. Its ikernels end with it, and so with the application. */
export class Ikernels {
  #last: Promise<unknown> = Promise.resolve(); // the connection is asked one thing at a time
  #connection: Pointer;
  readonly #rings = new Set<Ring>();
  readonly #closed = new AbortController();
  /** @internal */
  readonly closed: AbortSignal = this.#closed.signal;

  private constructor(connection: Pointer) {
    this.#connection = connection;
  }

  static async open(path: string = IKERNEL_SOCKET): Promise<Ikernels> {
    const connection: [Pointer] = [null];
    const result = await library().open(connection, path);
    if (result !== 0) {
      throw new IkernelError(library().error(null, result));
    }
    return new Ikernels(connection[0]);
  }

  /** Ends all ikernels of the connection, and their rings. Their sockets get all of their datagrams again. */
  async close(): Promise<void> {
    const closing = this.#connection;
    this.#connection = null;
    this.#closed.abort();
    this.#rings.forEach((ring) => ring.end());
    await this.#last;
    library().close(closing);
  }

  /** Makes an ikernel that has no socket yet. */
  async create(name: string, { namespace = "" }: CreateOptions = {}): Promise<Ikernel> {
    const ikernel: [Pointer] = [null];
    await this.ask((connection) => library().create(connection, name, namespace, ikernel));
    return new Ikernel(this, ikernel[0]);
  }

  /** @internal Has a ring end with the connection. */
  keep(ring: Ring): void {
    this.#rings.add(ring);
    if (this.#connection === null) {
      ring.end();
    }
  }

  /** @internal */
  forget(ring: Ring): void {
    this.#rings.delete(ring);
  }

  /** @internal Calls a function of the library when all others have returned. */
  ask(f: (connection: Pointer) => Promise<number>): Promise<void> {
    const connection = this.#connection;
    if (connection === null) {
      return Promise.reject(new Closed());
    }
    const asked = this.#last.then(async () => {
      const result = await f(connection);
      if (result !== 0) {
        const kind = result === differs ? RegisterDiffers : result === faulted ? IkernelFault : IkernelError;
        throw new kind(library().error(connection, result));
      }
    });
    this.#last = asked.catch(() => {});
    return asked;
  }
}

/** Serves sockets that are attached to it, before the application does. */
export class Ikernel {
  readonly #all: Ikernels;
  #ikernel: Pointer;
  #rings: Ring[] = [];
  readonly #ended = new AbortController();

  /** @internal */
  constructor(all: Ikernels, ikernel: Pointer) {
    this.#all = all;
    this.#ikernel = ikernel;
  }

  /** Ends the ikernel, its rings and notes, and forgets its registers. */
  async destroy(): Promise<void> {
    const ikernel = this.#alive();
    this.#ikernel = null;
    this.#ended.abort();
    this.#endRings();
    await this.#all.ask(() => library().destroy(ikernel));
  }

  /**
   * Has the ikernel get the datagrams to a UDP socket that is bound, before the socket does. That ends when the socket closes. threshold takes TCP sockets that
   * are connected or listen, too. A number is a file descriptor.
   */
  async attach(socket: Attachable): Promise<void> {
    await this.#withSocket(socket, library().attach);
  }

  /** Has a socket get its datagrams again. The ikernel keeps its registers. */
  async detach(socket: Attachable): Promise<void> {
    await this.#withSocket(socket, library().detach);
  }

  /** All registers, as they are at one moment. */
  read(): Promise<Registers> {
    return this.transact({}, {});
  }

  /** Writes registers in one step. */
  async write(values: Values): Promise<void> {
    await this.transact({}, values);
  }

  /** Gives all registers and writes some in the same step, if others have the values that are expected; or else it fails with RegisterDiffers. */
  async transact(expect: Values, write: Values): Promise<Registers> {
    const ikernel = this.#alive();
    const [expected, written] = [pack(expect), pack(write)];
    const before: Partial<Struct> = {};
    await this.#all.ask(() => library().transact(ikernel, expected, written, before));
    const { n, all } = before as Struct;
    return Object.fromEntries(all.slice(0, n).map(({ name, value }) => [name, BigInt(value)]));
  }

  /** Has the ikernel send messages by rings, once. */
  async openRings(rings: Rings): Promise<Ring[]> {
    const ikernel = this.#alive();
    const { count, size, polled = false } = rings;
    checkWhole("count", count, MAX_UINT32);
    checkWhole("size", size, MAX_UINT32);
    checkFlag("polled", polled);
    const pointers = new BigUint64Array(new ArrayBuffer(8 * Math.max(1, Math.min(count, maxRings)))); // an empty one is NULL in C
    await this.#all.ask(async () => {
      const result = await library().openRings(ikernel, { count, size, polled }, pointers);
      if (result === 0) {
        const watch = polled ? undefined : await this.#watch(ikernel);
        this.#rings = Array.from(pointers, (pointer) => new Ring(pointer, watch));
        this.#rings.forEach((ring) => this.#all.keep(ring));
        if (this.#ikernel === null) {
          this.#endRings(); // it was destroyed meanwhile
        }
      }
      return result;
    });
    return [...this.#rings];
  }

  /** Why the ikernel gave up; undefined: it has not. */
  async fault(): Promise<IkernelFault | undefined> {
    const ikernel = this.#alive();
    const fault: Partial<FaultStruct> = {};
    await this.#all.ask(() => library().fault(ikernel, fault));
    const { code, text } = fault as FaultStruct;
    return code === 0 ? undefined : new IkernelFault(text, code);
  }

  /** Waits until the ikernel gives up. With a signal that aborts, it fails with its reason. */
  async waitFault(options: { signal?: AbortSignal } = {}): Promise<IkernelFault> {
    const fd: [number] = [-1];
    const ikernel = this.#alive();
    await this.#all.ask(() => library().faultDescriptor(ikernel, fd));
    for (;;) {
      options.signal?.throwIfAborted();
      const fault = await this.fault();
      if (fault !== undefined) {
        return fault;
      }
      await readable([...fd], [this.#ended.signal, this.#all.closed, options.signal]);
    }
  }

  /** What those who wait for a ring know of the ikernel. The library has its descriptor already. */
  async #watch(ikernel: Pointer): Promise<Watch> {
    const fd: [number] = [-1];
    await library().faultDescriptor(ikernel, fd);
    return { descriptor: fd[0], why: async () => (await this.fault()) ?? new IkernelError("the ikernel has ended") };
  }

  /** The counts of each ring's messages. */
  async ringCounts(): Promise<RingCounts[]> {
    const ikernel = this.#alive();
    const n = this.#rings.length;
    const counts = new BigUint64Array(new ArrayBuffer(16 * Math.max(1, n)));
    await this.#all.ask(() => library().countRings(ikernel, counts, n));
    return this.#rings.map((_, i) => ({ posted: counts[2 * i] as bigint, refused: counts[2 * i + 1] as bigint }));
  }

  /** Lets the application write notes, once, to an ikernel that takes some. */
  async openNotes(): Promise<Notes> {
    const ikernel = this.#alive();
    const notes: [Pointer] = [null];
    await this.#all.ask(() => library().openNotes(ikernel, notes));
    return new Notes(
      (f) => this.#all.ask(f),
      () => (this.#alive(), notes[0]),
    );
  }

  #endRings(): void {
    for (const ring of this.#rings) {
      ring.end();
      this.#all.forget(ring);
    }
  }

  /** The application may close its socket while the library works, so that gets another descriptor of the same socket. */
  async #withSocket(socket: Attachable, f: (ikernel: Pointer, fd: number) => Promise<number>): Promise<void> {
    const ikernel = this.#alive();
    const fd = library().duplicate(typeof socket === "number" ? socket : descriptor(socket));
    if (fd < 0) {
      throw new IkernelError("the socket is closed");
    }
    try {
      await this.#all.ask(() => f(ikernel, fd));
    } finally {
      closeSync(fd);
    }
  }

  #alive(): Pointer {
    if (this.#ikernel === null) {
      throw new IkernelError("the ikernel is destroyed");
    }
    return this.#ikernel;
  }
}

/** node:dgram and node:net show a socket's descriptor only in what they keep of it. */
function descriptor(socket: Socket | Connection | Server): number {
  const symbol = Object.getOwnPropertySymbols(socket).find((s) => s.description === "state symbol");
  const state = symbol === undefined ? undefined : (socket as unknown as Record<symbol, { handle?: Handle }>)[symbol];
  const fd = (state?.handle ?? (socket as { _handle?: Handle })._handle)?.fd;
  if (fd === undefined || fd < 0) {
    throw new IkernelError("the socket has no descriptor: attach it when it is bound or connected, or give a descriptor's number");
  }
  return fd;
}

type Handle = { fd?: number } | null;

function pack(values: Values): Struct {
  const all: Struct["all"] = Object.entries(values).map(([name, value]) => ({ name, value: word(name, BigInt(value)) }));
  if (all.length > maxRegisters) {
    throw new RangeError(`an ikernel has ${maxRegisters} registers at most, not ${all.length}`);
  }
  const n = all.length;
  while (all.length < maxRegisters) {
    all.push({ name: null, value: 0 });
  }
  return { n, all };
}

function word(name: string, value: bigint): bigint {
  if (BigInt.asIntN(64, value) !== value && BigInt.asUintN(64, value) !== value) {
    throw new RangeError(`register ${name} has 64 bits: ${value} is out of range`);
  }
  return BigInt.asIntN(64, value);
}
