// SPDX-License-Identifier: Apache-2.0
// A CoAP server whose requests are maps in CBOR, with a token and a body. It answers with the body if the token is valid, and 4.01 if not.
//
//   node server.js ADDRESS PORT KEY...
//
// It says when it listens. For each line that it reads, it says what it has counted.
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';
import cbor from 'cbor';
import coap from 'coap';
import jwt from 'jsonwebtoken';

const [address, port, ...keys] = process.argv.slice(2);
const counts = { datagrams: 0, requests: 0, accepted: 0, expired: 0, refused: 0 };

function verify(token) {
  for (const key of keys) {
    try {
      return jwt.verify(token, key, { algorithms: ['HS256'] });
    } catch (error) {
      if (error instanceof jwt.TokenExpiredError) {
        counts.expired++;
        throw error;
      }
    }
  }
  counts.refused++;
  throw new Error('no key has signed it');
}

const server = coap.createServer((request, response) => {
  counts.requests++;
  try {
    const { token, body } = cbor.decodeFirstSync(request.payload);
    verify(token);
    counts.accepted++;
    response.code = '2.04';
    response.end(cbor.encode(body));
  } catch (error) {
    response.code = '4.01';
    response.end(error.message);
  }
});

const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' });
socket.on('message', () => counts.datagrams++);
socket.bind(Number(port), address, () => {
  server.listen(socket);
  console.log('listens');
});
createInterface({ input: process.stdin })
  .on('line', () => console.log(JSON.stringify(counts)))
  .on('close', () => process.exit());
