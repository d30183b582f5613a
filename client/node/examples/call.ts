// SPDX-License-Identifier: Apache-2.0
// Calls a function by its name: call.js GATEWAY NAME [TEXT]. GATEWAY is unix:/run/lambdanic/default/lambdanic.sock or the like.

import { Client, LambdanicError } from "@lambdanic/client";

const [gateway, name, ...text] = process.argv.slice(2);
if (gateway === undefined || name === undefined) {
  console.error("usage: call.js GATEWAY NAME [TEXT]");
  process.exit(2);
}
const credentials = process.env["LAMBDANIC_CREDENTIALS"];
const client = new Client({ gateway, ...(credentials === undefined ? {} : { credentials }) });
try {
  const reply = await client.call(name, Buffer.from(text.join(" ")), { deadline: 1000 });
  process.stdout.write(reply.body);
  process.exitCode = reply.status;
} catch (e) {
  if (!(e instanceof LambdanicError)) {
    throw e;
  }
  console.error(`${name}: ${e.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
