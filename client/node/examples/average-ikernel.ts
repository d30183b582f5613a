// SPDX-License-Identifier: Apache-2.0
// A server of sensors: average.js PORT. Each sends integers of four bytes, big-endian, by UDP. The server prints those above 100. To a
// datagram of one byte it answers with the average of all.

import { createSocket } from "node:dgram";
import { Ikernels } from "@lambdanic/client/ikernel";

const server = createSocket("udp6");
const ikernels = await Ikernels.open(process.env["LAMBDANIC_IKERNEL_SOCKET"]);
const ikernel = await ikernels.create("threshold");
await ikernel.write({ limit: 100 });

server.on("message", async (message, peer) => {
  if (message.length === 4) {
    console.log(`alert ${message.readInt32BE()}`);
  } else if (message.length === 1) {
    const { sum = 0n, count = 0n } = await ikernel.read();
    server.send(`average ${(Number(sum) / Math.max(Number(count), 1)).toFixed(1)} of ${count}`, peer.port, peer.address);
  }
});
server.bind(Number(process.argv[2]), async () => {
  await ikernel.attach(server);
  console.log("ready");
});
