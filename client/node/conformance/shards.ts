// SPDX-License-Identifier: Apache-2.0
// Rebuilds datagrams by parities: shards.js. Each line has messages of the ikernel parity in hexadecimal, each with an x before it, of which the first is the
// parity. test/ikernels compares what the programs of all languages print for each line.

import { createInterface } from "node:readline";
import { Shard } from "../src/ikernel.js";

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const [parity, ...others] = line.split(" ").map((word) => Shard.parse(Buffer.from(word.slice(1), "hex"))) as [Shard, ...Shard[]];
    const { group, index, data } = parity.rebuild(others);
    console.log(`${group} ${index} x${data.toString("hex")}`);
  } catch (e) {
    console.log(e instanceof RangeError ? "refused" : e);
  }
}
