// SPDX-License-Identifier: Apache-2.0
// Generated from api/wire.go by api/genheader. Do not edit.
// What λ-RPC's packets look like: constants and header (docs/protocol.md).

export const PORT = 4370;
export const MAGIC = 955;
export const VERSION = 1;
export const HEADER_LEN = 64;
export const MAX_PAYLOAD = 1408;
export const FRAGMENT = 1376;
export const MAX_MESSAGE = 94371840;
export const ASK_AFTER = 3;

export enum Type {
  Request = 1,
  Response = 2,
  Ack = 3,
  Pull = 4,
  Error = 5,
}

export enum Flag {
  Tag = 1,
  TagPayload = 2,
  AckWanted = 4,
  Done = 8,
  Resend = 16,
  Once = 32,
  OddKey = 64,
  Region = 128,
}

export enum Code {
  UnknownWorkload = 1,
  OverQuota = 2,
  BadTag = 3,
  Malformed = 4,
  LambdaFault = 5,
  TooLarge = 6,
  Busy = 7,
  Timeout = 8,
  Unreachable = 9,
  Stale = 10,
  Deadline = 11,
}

export enum Fault {
  Own = 1,
  Time = 2,
  Bounds = 3,
  Recursion = 4,
  Memory = 5,
  Division = 6,
  Crash = 7,
}

export enum Status {
  OK = 0,
  NotFound = 1,
  BadRequest = 2,
  Failed = 3,
  ServiceError = 4,
  HTTP400 = 100,
}

/** The fields in the order in which they stand. */
export interface Header {
  magic: number;
  version: number;
  type: number;
  flags: number;
  code: number;
  length: number;
  workload: number;
  revision: number;
  request: bigint;
  index: number;
  count: number;
  messageLen: number;
  method: number;
  deadlineUs: number;
  client: number;
  sequence: number;
  grant: number;
  tag: bigint;
}

export function readHeader(view: DataView): Header {
  return {
    magic: view.getUint16(0),
    version: view.getUint8(2),
    type: view.getUint8(3),
    flags: view.getUint8(4),
    code: view.getUint8(5),
    length: view.getUint16(6),
    workload: view.getUint32(8),
    revision: view.getUint32(12),
    request: view.getBigUint64(16),
    index: view.getUint32(24),
    count: view.getUint32(28),
    messageLen: view.getUint32(32),
    method: view.getUint32(36),
    deadlineUs: view.getUint32(40),
    client: view.getUint32(44),
    sequence: view.getUint32(48),
    grant: view.getUint32(52),
    tag: view.getBigUint64(56),
  };
}

export function writeHeader(view: DataView, header: Header): void {
  view.setUint16(0, header.magic);
  view.setUint8(2, header.version);
  view.setUint8(3, header.type);
  view.setUint8(4, header.flags);
  view.setUint8(5, header.code);
  view.setUint16(6, header.length);
  view.setUint32(8, header.workload);
  view.setUint32(12, header.revision);
  view.setBigUint64(16, header.request);
  view.setUint32(24, header.index);
  view.setUint32(28, header.count);
  view.setUint32(32, header.messageLen);
  view.setUint32(36, header.method);
  view.setUint32(40, header.deadlineUs);
  view.setUint32(44, header.client);
  view.setUint32(48, header.sequence);
  view.setUint32(52, header.grant);
  view.setBigUint64(56, header.tag);
}
