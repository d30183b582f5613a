// SPDX-License-Identifier: Apache-2.0
// Rebuilds datagrams that were lost, from what the ikernel parity posts of the others.

import { ownBytes } from "./arguments.js";

const headLength = 16; // struct parity_head of ikernels/parity/parity.bpf.c: group, index, count, length

/** A copy of a datagram by the ikernel parity, or the parity of a group of them. */
export class Shard {
  private constructor(
    readonly group: bigint,
    /** of the datagram in its group */
    readonly index: number,
    /** 0: this is a datagram; or else it is the parity of so many */
    readonly count: number,
    /** of the datagram; of a parity, what the lengths of all XOR to */
    readonly length: number,
    readonly data: Buffer,
  ) {}

  /** Reads what parity posts to a ring, and copies it. It fails with RangeError if the message is of another ikernel. */
  static parse(message: Uint8Array): Shard {
    const bytes = Buffer.from(ownBytes("message", message).buffer);
    if (bytes.length < headLength) {
      throw new RangeError(`a message of ${bytes.length} bytes is no shard: is the ring one of parity?`);
    }
    const head = Uint8Array.from(bytes.subarray(0, headLength)).buffer; // in the machine's order
    const [group] = new BigUint64Array(head) as unknown as [bigint];
    const [index, count] = new Uint16Array(head, 8) as unknown as [number, number];
    const [length] = new Uint32Array(head, 12) as unknown as [number];
    const data = bytes.subarray(headLength);
    if (count === 0 && length !== data.length) {
      throw new RangeError(`a shard of ${data.length} bytes says that it has ${length}: is the ring one of parity?`);
    }
    return new Shard(group, index, count, length, data);
  }

  /**
   * Makes the datagram that is missing of a group from its parity, which this is, and all others, in any order. It fails with RangeError if they are not those of
   * one group.
   */
  rebuild(others: readonly Shard[]): Shard {
    const missing = this.#missing(others);
    const what = `rebuild shard ${missing} of group ${this.group}`;
    const data = Buffer.from(this.data);
    let length = this.length;
    for (const other of others) {
      if (other.data.length > data.length) {
        throw new RangeError(`${what}: shard ${other.index} is longer than the parity`);
      }
      length = (length ^ other.data.length) >>> 0;
      other.data.forEach((byte, i) => (data[i] = (data[i] as number) ^ byte));
    }
    if (length > data.length) {
      throw new RangeError(`${what}: the shards do not belong together`);
    }
    return new Shard(this.group, missing, 0, length, data.subarray(0, length));
  }

  /** The index of the one datagram of the group that is not among others. */
  #missing(others: readonly Shard[]): number {
    if (this.count === 0) {
      throw new RangeError("rebuild a shard: only a parity can");
    }
    const what = `rebuild a shard of group ${this.group}`;
    const left = new Set(Array(this.count).keys());
    for (const { group, index, count } of others) {
      if (group !== this.group || count !== 0 || !left.delete(index)) {
        throw new RangeError(`${what}: shard ${index} of group ${group} is none of the others`);
      }
    }
    const [missing] = left;
    if (missing === undefined || left.size !== 1) {
      throw new RangeError(`${what}: there are ${others.length} others, and it takes ${this.count - 1}`);
    }
    return missing;
  }
}
