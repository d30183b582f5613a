// SPDX-License-Identifier: Apache-2.0
// Checks of arguments. They run before a call begins: an error found later, while packets are sent, would end others' calls.

import { inspect } from "node:util";

export const MAX_UINT32 = 0xffffffff;

/** A whole number from 0 to most. */
export function checkWhole(name: string, value: unknown, most: number): void {
  if (typeof value !== "number") {
    throw new TypeError(`${name} is ${inspect(value)}: give a whole number`);
  }
  if (!Number.isInteger(value) || value < 0 || value > most) {
    throw new RangeError(`${name} is ${value}: give a whole number from 0 to ${most}`);
  }
}

/** A time to wait. */
export function checkTime(name: string, value: unknown): void {
  if (typeof value !== "number") {
    throw new TypeError(`${name} is ${inspect(value)}: give a number of milliseconds`);
  }
  if (!Number.isFinite(value) || value <= 0) {
    throw new RangeError(`${name} is ${value}: give a number of milliseconds above 0`);
  }
}

export function checkFlag(name: string, value: unknown): void {
  if (typeof value !== "boolean") {
    throw new TypeError(`${name} is ${inspect(value)}: give true or false`);
  }
}

/** A string that can be sent in an HTTP request: one without lone surrogates. */
export function checkText(name: string, value: unknown): void {
  if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) {
    throw new TypeError(`${name} is ${inspect(value)}: give a string`);
  }
}

/** A copy of bytes, which the caller can neither change nor transfer. */
export function ownBytes(name: string, value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) {
    throw new TypeError(`${name} is ${inspect(value, { depth: 0, maxStringLength: 40 })}: give a Uint8Array or a Buffer`);
  }
  return new Uint8Array(value);
}

/** Options, whose fields are checked one by one where they are given. */
export function checkOptions<T extends object>(name: string, value: T, checks: { [K in keyof T]-?: (name: string, field: unknown) => void }): void {
  if (typeof value !== "object" || value === null) {
    throw new TypeError(`${name} are ${inspect(value)}: give an object`);
  }
  for (const [field, check] of Object.entries(checks) as [keyof T & string, (name: string, field: unknown) => void][]) {
    if (value[field] !== undefined) {
      check(field, value[field]);
    }
  }
}

/** options without the fields that are undefined, which would hide defaults. */
export function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
