// SPDX-License-Identifier: Apache-2.0
// Waits until descriptors are readable that libuv cannot wait for.

import { readSync, writeSync } from "node:fs";
import { library } from "./library.js";

const slice = 1000; // ms. A worker that is terminated runs no handler, but ends when its threads do
const pollIn = 1n; // POLLIN

/** Waits for all rings together, however many they are: on one thread of libuv's pool, which has few. */
class Waiter {
  readonly #event = library().makeEvent(); // ends the thread's waiting, as others are to be waited for
  readonly #waiting = new Map<number, () => void>();
  #runs = false;

  constructor() {
    process.on("exit", () => this.#wake()); // the process ends when its threads do
  }

  add(fd: number, done: () => void): void {
    this.#waiting.set(fd, done);
    if (this.#runs) {
      this.#wake();
    } else {
      void this.#run();
    }
  }

  remove(fd: number): void {
    this.#waiting.delete(fd);
    this.#wake();
  }

  async #run(): Promise<void> {
    this.#runs = true;
    while (this.#waiting.size > 0) {
      const fds = [this.#event, ...this.#waiting.keys()];
      const polled = new BigInt64Array(new ArrayBuffer(8 * fds.length)); // of struct pollfd. An ArrayBuffer stays where it is
      fds.forEach((fd, i) => (polled[i] = BigInt(fd) | (pollIn << 32n)));
      await library().waitFor(polled, fds.length, slice);
      fds.forEach((fd, i) => {
        if ((polled[i] as bigint) >> 48n !== 0n) {
          this.#found(fd);
        }
      });
    }
    this.#runs = false;
  }

  #found(fd: number): void {
    if (fd === this.#event) {
      readSync(fd, Buffer.alloc(8));
      return;
    }
    const done = this.#waiting.get(fd);
    this.#waiting.delete(fd);
    done?.();
  }

  #wake(): void {
    writeSync(this.#event, new BigUint64Array([1n]));
  }
}

let waiter: Waiter | undefined;

/** Waits until a descriptor is readable, or an application's signal or `end` gives that up. Each descriptor is waited for once at a time. */
export async function readable(fd: number, ends: (AbortSignal | undefined)[]): Promise<void> {
  const all = (waiter ??= new Waiter());
  const given = ends.filter((end) => end !== undefined);
  let stop = (): void => {};
  try {
    await new Promise<void>((resolve) => {
      stop = () => {
        all.remove(fd);
        resolve();
      };
      given.forEach((end) => end.addEventListener("abort", stop));
      all.add(fd, resolve);
    });
  } finally {
    given.forEach((end) => end.removeEventListener("abort", stop));
  }
}
