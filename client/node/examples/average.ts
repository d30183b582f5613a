// SPDX-License-Identifier: Apache-2.0
// A server of sensors: average.js PORT. Each sends integers of four bytes, big-endian, by UDP. The server prints those above 100. To a
// datagram of one byte it answers with the average of all.

import { createSocket } from "node:dgram";

const server = createSocket("udp6");
let sum = 0;
let count = 0;

server.on("message", (message, peer) => {
  if (message.length === 4) {
    const value = message.readInt32BE();
    sum += value;
    count++;
    if (value > 100) {
      console.log(`alert ${value}`);
    }
  } else if (message.length === 1) {
    server.send(`average ${(sum / Math.max(count, 1)).toFixed(1)} of ${count}`, peer.port, peer.address);
  }
});
server.bind(Number(process.argv[2]), () => {
  console.log("ready");
});
