// SPDX-License-Identifier: Apache-2.0
// Packets: how they are parsed and built, and where their bytes stand in a message.

import { FRAGMENT, HEADER_LEN, MAGIC, VERSION, Type, readHeader, writeHeader, type Header } from "./wire.js";

/** The bytes are not a λ-RPC packet of this version. */
export class NotRPC extends Error {}

/** A λ-RPC packet contradicts itself. */
export class BadPacket extends Error {}

/** Splits a datagram into header and message bytes, and leaves the padding out. */
export function parse(datagram: Uint8Array): { header: Header; payload: Uint8Array } {
  if (datagram.length < HEADER_LEN) {
    throw new NotRPC(`${datagram.length} bytes, shorter than a header`);
  }
  const header = readHeader(new DataView(datagram.buffer, datagram.byteOffset, HEADER_LEN));
  if (header.magic !== MAGIC || header.version !== VERSION) {
    throw new NotRPC(`magic ${header.magic}, version ${header.version}`);
  }
  if (header.type < Type.Request || header.type > Type.Error) {
    throw new BadPacket(`type ${header.type}`);
  }
  if (header.length > datagram.length - HEADER_LEN) {
    throw new BadPacket(`length ${header.length} in a datagram with ${datagram.length - HEADER_LEN} bytes of payload`);
  }
  return { header, payload: datagram.subarray(HEADER_LEN, HEADER_LEN + header.length) };
}

/** Makes a datagram, padded so that room bytes follow the header. */
export function encode(header: Header, payload: Uint8Array, room: number): Buffer {
  const length = HEADER_LEN + payload.length;
  const packet = Buffer.allocUnsafe(Math.max(length, HEADER_LEN + room));
  writeHeader(new DataView(packet.buffer, packet.byteOffset, HEADER_LEN), header);
  packet.set(payload, HEADER_LEN);
  return packet.fill(0, length);
}

/** Where the packet's bytes stand: at offset, in a message whose packets but the last carry size bytes each. */
export function placement(header: Header): { offset: number; size: number } {
  const { length, index, count, messageLen: total } = header;
  if (index >= count || length > total) {
    throw new BadPacket(`packet ${index} of ${count}, ${length} of ${total} bytes`);
  }
  if (count === 1) {
    if (length !== total) {
      throw new BadPacket(`a single packet of ${length} bytes is not its message of ${total}`);
    }
    return { offset: 0, size: length };
  }
  if (length === 0) {
    throw new BadPacket("empty packet of several");
  }
  let [offset, size] = [index * length, length];
  if (index === count - 1) {
    offset = total - length;
    size = Math.floor(offset / (count - 1));
    if (size * (count - 1) !== offset || length > size) {
      throw new BadPacket("the last packet does not fit the others");
    }
  }
  if (fragments(total, size) !== count) {
    throw new BadPacket(`${count} packets of ${size} bytes are not ${total}`);
  }
  return { offset, size };
}

/** How many packets of size bytes a message takes. */
export function fragments(total: number, size: number): number {
  return Math.max(1, Math.ceil(total / size));
}

/** In how many packets a request travels and with how many bytes in each, where one packet holds up to single bytes. */
export function packets(total: number, single: number): { count: number; size: number } {
  return total <= single ? { count: 1, size: total } : { count: fragments(total, FRAGMENT), size: FRAGMENT };
}
