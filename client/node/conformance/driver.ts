// SPDX-License-Identifier: Apache-2.0
// The driver for test/conformance: commands in, answers out, a line of JSON each.

import { createInterface } from "node:readline";

import * as errors from "../src/errors.js";
import { Client, type Reply } from "../src/index.js";
import { BadPacket, NotRPC, encode, parse, placement } from "../src/packet.js";
import { HEADER_LEN, Type, type Header } from "../src/wire.js";

interface Command {
  do: string;
  packet: string;
  header: Record<string, number | string>;
  payload: string;
  padding: number;
  address?: string;
  gateway?: string;
  credentials?: string;
  namespace?: string;
  timeout_ms: number;
  reply_room: number;
  max_reply: number;
  without_resend?: boolean;
  key?: string;
  tag_header_only?: boolean;
  calls: Call[];
  at_once?: boolean;
}

interface Call {
  name?: string;
  workload: number;
  method?: number;
  body: string;
  deadline_us?: number;
  reply_room?: number;
  once?: boolean;
}

const names = new Map<unknown, string>([
  [errors.DeadlineExceeded, "deadline exceeded"],
  [errors.RequestTooLarge, "request too large"],
  [errors.ReplyTooLarge, "reply too large"],
  [errors.NoSuchFunction, "no such function"],
  [errors.GatewayError, "gateway"],
  [errors.UnknownWorkload, "unknown workload"],
  [errors.OverQuota, "over quota"],
  [errors.BadTag, "bad tag"],
  [errors.Malformed, "malformed"],
  [errors.LambdaFault, "lambda fault"],
  [errors.TooLarge, "too large"],
  [errors.Busy, "busy"],
  [errors.ServiceTimeout, "time-out"],
  [errors.Unreachable, "unreachable"],
  [errors.Stale, "stale"],
  [errors.TooLate, "deadline"],
]);

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}

function camel(name: string): string {
  return name === "message_length" ? "messageLen" : name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name === "messageLen" ? "message_length" : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function readHeader(fields: Command["header"]): Header {
  const entries = Object.entries(fields).map(([name, value]) => [camel(name), typeof value === "string" ? BigInt(value) : value]);
  return Object.fromEntries(entries) as Header;
}

function decode(command: Command): object {
  const datagram = Buffer.from(command.packet, "hex");
  try {
    const { header, payload } = parse(datagram);
    if (header.type === Type.Request || header.type === Type.Response) {
      placement(header);
    }
    const fields = Object.entries(header).map(([name, value]: [string, number | bigint]) => [
      snake(name),
      typeof value === "bigint" ? `0x${value.toString(16).padStart(16, "0")}` : value,
    ]);
    return { header: Object.fromEntries(fields), payload: hex(payload), padding: datagram.length - HEADER_LEN - payload.length };
  } catch (e) {
    if (e instanceof NotRPC || e instanceof BadPacket) {
      return { error: e instanceof NotRPC ? "not λ-RPC" : "malformed" };
    }
    throw e;
  }
}

function encodePacket(command: Command): object {
  const payload = Buffer.from(command.payload, "hex");
  return { packet: hex(encode(readHeader(command.header), payload, payload.length + command.padding)) };
}

function open(command: Command): Client {
  return new Client({
    ...(command.address ? { address: command.address } : {}),
    ...(command.gateway ? { gateway: command.gateway } : {}),
    ...(command.credentials ? { credentials: command.credentials } : {}),
    ...(command.namespace ? { namespace: command.namespace } : {}),
    timeout: command.timeout_ms,
    replyRoom: command.reply_room,
    maxReply: command.max_reply,
    resend: !command.without_resend,
    ...(command.key ? { key: command.key } : {}),
    tagPayload: !command.tag_header_only,
  });
}

async function outcome(client: Client, call: Call): Promise<object> {
  let reply: Reply;
  try {
    reply = await client.call(call.name || call.workload, Buffer.from(call.body, "hex"), {
      method: call.method ?? 0,
      ...(call.deadline_us ? { deadline: call.deadline_us / 1000 } : {}),
      once: call.once ?? false,
      ...(call.reply_room ? { replyRoom: call.reply_room } : {}),
    });
  } catch (e) {
    if (!(e instanceof errors.LambdanicError)) {
      throw e;
    }
    return { error: names.get(e.constructor) ?? "unknown", need: e instanceof errors.RPCError ? e.need : 0, text: e.message };
  }
  return { status: reply.status, revision: reply.revision, body: hex(reply.body), resends: reply.resends };
}

async function callAll(client: Client, command: Command): Promise<object> {
  if (command.at_once) {
    return { outcomes: await Promise.all(command.calls.map((call) => outcome(client, call))) };
  }
  const outcomes = [];
  for (const call of command.calls) {
    outcomes.push(await outcome(client, call));
  }
  return { outcomes };
}

let client: Client | undefined;

async function obey(command: Command): Promise<object> {
  switch (command.do) {
    case "decode":
      return decode(command);
    case "encode":
      return encodePacket(command);
    case "open":
      client = open(command);
      return {};
    case "call":
      return callAll(client!, command);
    case "stats":
      return client!.stats;
    case "close":
      await client!.close();
      return {};
  }
  throw new Error(`unknown command ${command.do}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await obey(JSON.parse(line) as Command))}\n`);
}
