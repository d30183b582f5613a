// SPDX-License-Identifier: Apache-2.0
// Waits until descriptors are readable that libuv cannot wait for.

import { readSync, writeSync } from "node:fs";
import { library } from "./library.js";

const slice = 1000; // ms. A worker that is terminated runs no handler, but ends when its threads do
const pollIn = 1n; // POLLIN

/** Gets the descriptor that was found readable, if one was. */
type Done = (fd?: number) => void;

/** Waits for all rings together, however many they are: on one thread of libuv's pool, which has few. */
class Waiter {
  readonly #event = library().makeEvent(); // ends the thread's waiting, as others are to be waited for
  readonly #waiting = new Map<number, Set<Done>>();
  #runs = false;

  constructor() {
    process.on("exit", () => this.wake()); // the process ends when its threads do
  }

  add(fds: number[], done: Done): void {
    fds.forEach((fd) => this.#waiting.set(fd, (this.#waiting.get(fd) ?? new Set()).add(done)));
    if (this.#runs) {
      this.wake();
    } else {
      void this.#run();
    }
  }

  remove(fds: number[], done: Done): void {
    for (const fd of fds) {
      const all = this.#waiting.get(fd);
      all?.delete(done);
      if (all?.size === 0) {
        this.#waiting.delete(fd);
      }
    }
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
    [...(this.#waiting.get(fd) ?? [])].forEach((done) => done(fd)); // who removes itself
  }

  /** Has the thread see what is waited for now. */
  wake(): void {
    writeSync(this.#event, new BigUint64Array([1n]));
  }
}

let waiter: Waiter | undefined;

/** Waits until one of several descriptors is readable, and says which one, or an application's signal or `end` gives that up. */
export async function readable(fds: number[], ends: (AbortSignal | undefined)[]): Promise<number | undefined> {
  const all = (waiter ??= new Waiter());
  const given = ends.filter((end) => end !== undefined);
  let stop = (): void => {};
  try {
    return await new Promise((resolve) => {
      const done: Done = (fd) => {
        all.remove(fds, done);
        resolve(fd);
      };
      stop = () => {
        done();
        all.wake();
      };
      given.forEach((end) => end.addEventListener("abort", stop));
      all.add(fds, done);
      if (given.some((end) => end.aborted)) {
        stop(); // that was before, and is not said again
      }
    });
  } finally {
    given.forEach((end) => end.removeEventListener("abort", stop));
  }
}
