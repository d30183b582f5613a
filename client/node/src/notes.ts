// SPDX-License-Identifier: Apache-2.0
// What an application says to its ikernel.

import { ownBytes } from "./arguments.js";
import { full, library, type Pointer } from "./library.js";

type Ask = (f: () => Promise<number>) => Promise<void>;

/** Notes to an ikernel. They end with it. */
export class Notes {
  readonly #ask: Ask;
  readonly #pointer: () => Pointer; // throws if the ikernel is destroyed

  /** @internal */
  constructor(ask: Ask, pointer: () => Pointer) {
    this.#ask = ask;
    this.#pointer = pointer;
  }

  /** Has the ikernel get notes, in order. When it resolves, the ikernel has got them. If one is too long, only those before it are delivered. */
  async deliver(notes: Iterable<Uint8Array>): Promise<number> {
    const own = Array.from(notes, (note) => ownBytes("note", note));
    const to = this.#pointer();
    const room = new BigUint64Array(new ArrayBuffer(8));
    let delivered = 0;
    const send = async (): Promise<number> => {
      const count: [number] = [0];
      const result = await library().deliver(to, count);
      delivered += count[0];
      return result;
    };
    const write = async (note: Uint8Array): Promise<number> => {
      let result = library().reserve(to, note.length, room);
      if (result === full) {
        result = (await send()) || library().reserve(to, note.length, room);
      }
      if (result === 0) {
        library().copyTo(room[0] as bigint, note, note.length);
      }
      return result;
    };
    await this.#ask(async () => {
      let result = 0;
      for (let i = 0; i < own.length && result === 0; i++) {
        result = await write(own[i] as Uint8Array);
      }
      const sent = await send();
      return result || sent;
    });
    return delivered;
  }
}
