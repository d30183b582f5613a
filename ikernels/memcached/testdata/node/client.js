// SPDX-License-Identifier: Apache-2.0
// Changes values by memjs, which speaks the binary protocol. After each change it says what is stored now, and waits for a line.
//
//   node client.js HOST:PORT
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import memjs from 'memjs';

const client = memjs.Client.create(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function stored(key, value) {
  console.log(JSON.stringify({ key, value }));
  await lines.next();
  assert.equal((await client.get(key)).value?.toString() ?? null, value);
}

await client.set('node', 'first', {});
await stored('node', 'first');
assert.equal(await client.add('node', 'refused', {}), false);
await stored('node', 'first');
await client.replace('node', 'second', {});
await stored('node', 'second');
await client.append('node', ' end');
await stored('node', 'second end');
// Its prepend appends, too: it sends the same opcode.
await client.touch('node', 1000);
await stored('node', 'second end');
await client.delete('node');
await stored('node', null);
await client.add('node', 'third', { expires: 1000 });
await stored('node', 'third');
assert.equal((await client.increment('number', 3, { initial: 10 })).value, 10);
await stored('number', '10');
assert.equal((await client.increment('number', 90, {})).value, 100);
await stored('number', '100');
assert.equal((await client.decrement('number', 1, {})).value, 99);
await client.set('number', 'none', {});
await stored('number', 'none');
await client.flush();
await stored('number', null);
await stored('node', null);
client.close();
lines.return?.();
process.exit();
