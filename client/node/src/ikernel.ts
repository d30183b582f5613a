// SPDX-License-Identifier: Apache-2.0
// Ikernels for an application's own UDP sockets: accelerators in the NIC that get a socket's datagrams before the application does. They
// come by the C library, liblambdanic, as Node.js itself can hand no socket over to another process.

import type { Socket } from "node:dgram";
import { closeSync } from "node:fs";
import koffi from "koffi";
import { Closed, IkernelError, RegisterDiffers } from "./errors.js";

/** Where the daemon of this machine serves applications. */
export const IKERNEL_SOCKET = "/run/lambdanic/default/ikernel.sock";

/** All registers of an ikernel. One of unsigned numbers is converted as by BigInt.asIntN(64). */
export type Registers = Record<string, bigint>;

/** Values for registers. */
export type Values = Record<string, number | bigint>;

const differs = -11; // client/c/lambdanic.h
const maxRegisters = 16;
const dupCloexec = 1030; // F_DUPFD_CLOEXEC

type Pointer = object | null;

interface Struct {
  n: number;
  all: { name: string | null; value: number | bigint }[];
}

/** Functions of the C library. What is asynchronous runs on a thread of its own, and gives a result, 0 for success. */
interface Library {
  open: (ikernels: [Pointer], path: string) => Promise<number>;
  close: (ikernels: Pointer) => void;
  error: (ikernels: Pointer, result: number) => string;
  create: (ikernels: Pointer, name: string, ikernel: [Pointer]) => Promise<number>;
  destroy: (ikernel: Pointer) => Promise<number>;
  attach: (ikernel: Pointer, fd: number) => Promise<number>;
  detach: (ikernel: Pointer, fd: number) => Promise<number>;
  transact: (ikernel: Pointer, expect: Struct, write: Struct, before: Partial<Struct>) => Promise<number>;
  duplicate: (fd: number) => number;
}

let loaded: Library | undefined;

function library(): Library {
  return (loaded ??= load(process.env["LAMBDANIC_LIBRARY"] ?? "liblambdanic.so.1"));
}

function load(name: string): Library {
  let c: ReturnType<typeof koffi.load>;
  try {
    c = koffi.load(name);
  } catch (e) {
    throw new IkernelError(`load ${name}: ${String(e)}: install it with \`make -C client/c install\`, then run ldconfig`, { cause: e });
  }
  koffi.opaque("lambdanic_ikernels");
  koffi.opaque("lambdanic_ikernel");
  koffi.struct("lambdanic_register", { name: "const char *", value: "int64_t" });
  koffi.struct("lambdanic_registers", { n: "size_t", all: koffi.array("lambdanic_register", maxRegisters) });
  const later = (declaration: string) => {
    const f = c.func(declaration);
    return (...args: unknown[]) =>
      new Promise<number>((resolve, reject) => {
        f.async(...args, (error: Error | null, result: number) => (error === null ? resolve(result) : reject(error)));
      });
  };
  const fcntl = koffi.load(null).func("int fcntl(int fd, int command, ...)");
  return {
    open: later("int lambdanic_ikernels_open(_Out_ lambdanic_ikernels **ikernels, const char *path)"),
    close: c.func("void lambdanic_ikernels_close(lambdanic_ikernels *ikernels)"),
    error: c.func("const char *lambdanic_ikernels_error(const lambdanic_ikernels *ikernels, int result)"),
    create: later("int lambdanic_ikernel_create(lambdanic_ikernels *ikernels, const char *name, _Out_ lambdanic_ikernel **ikernel)"),
    destroy: later("int lambdanic_ikernel_destroy(lambdanic_ikernel *ikernel)"),
    attach: later("int lambdanic_ikernel_attach(lambdanic_ikernel *ikernel, int socket)"),
    detach: later("int lambdanic_ikernel_detach(lambdanic_ikernel *ikernel, int socket)"),
    transact: later(
      "int lambdanic_ikernel_transact(lambdanic_ikernel *ikernel, const lambdanic_registers *expect, const lambdanic_registers *write, " +
        "_Out_ lambdanic_registers *before)",
    ),
    duplicate: (fd) => fcntl(fd, dupCloexec, "int", 0),
  };
}

/** An application's connection to the daemon of this machine. Its ikernels end with it, and so with the application. */
export class Ikernels {
  #last: Promise<unknown> = Promise.resolve(); // the connection is asked one thing at a time
  #connection: Pointer;

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

  /** Ends all ikernels of the connection. Their sockets get all of their datagrams again. */
  async close(): Promise<void> {
    const closing = this.#connection;
    this.#connection = null;
    await this.#last;
    library().close(closing);
  }

  /** Makes an ikernel that has no socket yet. */
  async create(name: string): Promise<Ikernel> {
    const ikernel: [Pointer] = [null];
    await this.ask((connection) => library().create(connection, name, ikernel));
    return new Ikernel(this, ikernel[0]);
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
        throw new (result === differs ? RegisterDiffers : IkernelError)(library().error(connection, result));
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

  /** @internal */
  constructor(all: Ikernels, ikernel: Pointer) {
    this.#all = all;
    this.#ikernel = ikernel;
  }

  /** Ends the ikernel and forgets its registers. */
  async destroy(): Promise<void> {
    const ikernel = this.#alive();
    this.#ikernel = null;
    await this.#all.ask(() => library().destroy(ikernel));
  }

  /**
   * Has the ikernel get the datagrams to a UDP socket that is bound, before the socket does. That ends when the socket closes. A number is a
   * file descriptor.
   */
  async attach(socket: Socket | number): Promise<void> {
    await this.#withSocket(socket, library().attach);
  }

  /** Has a socket get its datagrams again. The ikernel keeps its registers. */
  async detach(socket: Socket | number): Promise<void> {
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

  /** The application may close its socket while the library works, so that gets another descriptor of the same socket. */
  async #withSocket(socket: Socket | number, f: (ikernel: Pointer, fd: number) => Promise<number>): Promise<void> {
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

/** node:dgram shows a socket's descriptor only in what it keeps of it. */
function descriptor(socket: Socket): number {
  const symbol = Object.getOwnPropertySymbols(socket).find((s) => s.description === "state symbol");
  const state = symbol === undefined ? undefined : (socket as unknown as Record<symbol, { handle?: { fd?: number } | null }>)[symbol];
  const fd = state?.handle?.fd;
  if (fd === undefined || fd < 0) {
    throw new IkernelError("the socket has no descriptor: attach it when it is bound, or give a descriptor's number");
  }
  return fd;
}

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
