// SPDX-License-Identifier: Apache-2.0
// The C library, liblambdanic, and what ikernels need of libc.

import koffi from "koffi";
import { IkernelError } from "./errors.js";

/** Results of the library. */
export const differs = -11; // client/c/lambdanic.h
export const full = -13;
export const faulted = -14;
export const maxRegisters = 16;

const dupCloexec = 1030; // F_DUPFD_CLOEXEC
const eventFlags = 0o2004000; // EFD_CLOEXEC | EFD_NONBLOCK

export type Pointer = object | null;

export interface Struct {
  n: number;
  all: { name: string | null; value: number | bigint }[];
}

export interface FaultStruct {
  code: number;
  text: string;
}

/** Functions of the C library. What is asynchronous runs on a thread of its own, and gives a result, 0 for success. */
interface Library {
  open: (ikernels: [Pointer], path: string) => Promise<number>;
  close: (ikernels: Pointer) => void;
  error: (ikernels: Pointer, result: number) => string;
  create: (ikernels: Pointer, name: string, namespace: string, ikernel: [Pointer]) => Promise<number>;
  destroy: (ikernel: Pointer) => Promise<number>;
  attach: (ikernel: Pointer, fd: number) => Promise<number>;
  detach: (ikernel: Pointer, fd: number) => Promise<number>;
  transact: (ikernel: Pointer, expect: Struct, write: Struct, before: Partial<Struct>) => Promise<number>;
  openRings: (ikernel: Pointer, rings: { count: number; size: number; polled: boolean }, pointers: BigUint64Array) => Promise<number>;
  countRings: (ikernel: Pointer, counts: BigUint64Array, n: number) => Promise<number>;
  openNotes: (ikernel: Pointer, notes: [Pointer]) => Promise<number>;
  deliver: (notes: Pointer, delivered: [number]) => Promise<number>;
  reserve: (notes: Pointer, length: number, note: BigUint64Array) => number;
  pollRing: (ring: bigint, message: BigUint64Array) => number;
  releaseRing: (ring: bigint) => void;
  ringDescriptor: (ring: bigint) => number;
  fault: (ikernel: Pointer, fault: Partial<FaultStruct>) => Promise<number>;
  faultDescriptor: (ikernel: Pointer, fd: [number]) => Promise<number>;
  duplicate: (fd: number) => number;
  /** Copies bytes from or to an address in the library's memory. */
  copyFrom: (to: Uint8Array, from: bigint, length: number) => void;
  copyTo: (to: bigint, from: Uint8Array, length: number) => void;
  waitFor: (descriptors: BigInt64Array, n: number, milliseconds: number) => Promise<number>;
  makeEvent: () => number;
}

let loaded: Library | undefined;

/** It is loaded when it is first used. */
export function library(): Library {
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
  koffi.opaque("lambdanic_notes");
  koffi.struct("lambdanic_register", { name: "const char *", value: "int64_t" });
  koffi.struct("lambdanic_registers", { n: "size_t", all: koffi.array("lambdanic_register", maxRegisters) });
  koffi.struct("lambdanic_rings", { count: "uint32_t", size: "uint32_t", polled: "bool" });
  koffi.struct("lambdanic_fault", { code: "uint32_t", text: koffi.array("char", 220, "String") });
  const later = (declaration: string, from = c) => {
    const f = from.func(declaration);
    return (...args: unknown[]) =>
      new Promise<number>((resolve, reject) => {
        f.async(...args, (error: Error | null, result: number) => (error === null ? resolve(result) : reject(error)));
      });
  };
  const libc = koffi.load(null);
  const fcntl = libc.func("int fcntl(int fd, int command, ...)");
  const eventfd = libc.func("int eventfd(unsigned int count, int flags)");
  return {
    open: later("int lambdanic_ikernels_open(_Out_ lambdanic_ikernels **ikernels, const char *path)"),
    close: c.func("void lambdanic_ikernels_close(lambdanic_ikernels *ikernels)"),
    error: c.func("const char *lambdanic_ikernels_error(const lambdanic_ikernels *ikernels, int result)"),
    create: later(
      "int lambdanic_ikernel_create_for(lambdanic_ikernels *ikernels, const char *name, const char *name_of_namespace, " +
        "_Out_ lambdanic_ikernel **ikernel)",
    ),
    destroy: later("int lambdanic_ikernel_destroy(lambdanic_ikernel *ikernel)"),
    attach: later("int lambdanic_ikernel_attach(lambdanic_ikernel *ikernel, int socket)"),
    detach: later("int lambdanic_ikernel_detach(lambdanic_ikernel *ikernel, int socket)"),
    transact: later(
      "int lambdanic_ikernel_transact(lambdanic_ikernel *ikernel, const lambdanic_registers *expect, const lambdanic_registers *write, " +
        "_Out_ lambdanic_registers *before)",
    ),
    openRings: later("int lambdanic_rings_open(lambdanic_ikernel *ikernel, const lambdanic_rings *rings, void *ring)"),
    countRings: later("int lambdanic_rings_count(lambdanic_ikernel *ikernel, void *counts, size_t n)"),
    openNotes: later("int lambdanic_notes_open(lambdanic_ikernel *ikernel, _Out_ lambdanic_notes **notes)"),
    deliver: later("int lambdanic_notes_deliver(lambdanic_notes *notes, _Out_ uint32_t *delivered)"),
    reserve: c.func("int lambdanic_notes_reserve(lambdanic_notes *notes, size_t len, void *note)"),
    pollRing: c.func("int lambdanic_ring_poll(void *ring, void *message)"),
    releaseRing: c.func("void lambdanic_ring_release(void *ring)"),
    ringDescriptor: c.func("int lambdanic_ring_fd(const void *ring)"),
    fault: later("int lambdanic_ikernel_fault(lambdanic_ikernel *ikernel, _Out_ lambdanic_fault *fault)"),
    faultDescriptor: later("int lambdanic_ikernel_fault_fd(lambdanic_ikernel *ikernel, _Out_ int *fd)"),
    copyFrom: libc.func("void *memcpy(void *to, const void *from, size_t n)"),
    copyTo: libc.func("void *memcpy(void *to, const void *from, size_t n)"),
    waitFor: later("int poll(void *descriptors, unsigned long n, int milliseconds)", libc),
    makeEvent: () => eventfd(0, eventFlags),
    duplicate: (fd) => fcntl(fd, dupCloexec, "int", 0),
  };
}
