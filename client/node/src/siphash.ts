// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). Words of 64 bits are two halves, the upper one first, as
// bigints would take ten times as long.

/** What the hash begins with: v0 to v3, for a secret of 16 bytes. */
export function sipState(secret: Uint8Array): Int32Array {
  const view = new DataView(secret.buffer, secret.byteOffset, 16);
  const [k0low, k0high, k1low, k1high] = [0, 4, 8, 12].map((at) => view.getUint32(at, true)) as [number, number, number, number];
  return Int32Array.of(
    k0high ^ 0x736f6d65, k0low ^ 0x70736575, k1high ^ 0x646f7261, k1low ^ 0x6e646f6d,
    k0high ^ 0x6c796765, k0low ^ 0x6e657261, k1high ^ 0x74656462, k1low ^ 0x79746573,
  ); // prettier-ignore
}

/** The hash of parts, one behind the other, all but the last of a multiple of 8 bytes. The state is left as it is. */
export function sipHash(state: Int32Array, parts: readonly Uint8Array[]): { high: number; low: number } {
  const v = state.slice();
  let length = 0;
  let [high, low] = [0, 0]; // of the last word
  for (const part of parts) {
    const view = new DataView(part.buffer, part.byteOffset, part.length);
    const whole = part.length - (part.length % 8);
    for (let at = 0; at < whole; at += 8) {
      compress(v, view.getInt32(at + 4, true), view.getInt32(at, true));
    }
    for (let at = whole; at < part.length; at++) {
      const bits = part[at]! << (at % 4 * 8);
      [high, low] = at % 8 < 4 ? [high, low | bits] : [high | bits, low];
    }
    length += part.length;
  }
  compress(v, high | length << 24, low); // it ends with how many bytes there are
  v[5]! ^= 0xff;
  for (let i = 0; i < 4; i++) {
    round(v);
  }
  return { high: (v[0]! ^ v[2]! ^ v[4]! ^ v[6]!) >>> 0, low: (v[1]! ^ v[3]! ^ v[5]! ^ v[7]!) >>> 0 };
}

function compress(v: Int32Array, high: number, low: number): void {
  v[6]! ^= high;
  v[7]! ^= low;
  round(v);
  round(v);
  v[0]! ^= high;
  v[1]! ^= low;
}

function round(v: Int32Array): void {
  mix(v, 0, 2, 13);
  mix(v, 4, 6, 16);
  swap(v, 0);
  mix(v, 4, 2, 17);
  mix(v, 0, 6, 21);
  swap(v, 4);
}

/** Adds a word to another, rotates it, and has the sum flip its bits. a and b are where their upper halves are, by is less than 32. */
function mix(v: Int32Array, a: number, b: number, by: number): void {
  const high = v[b]!;
  const low = v[b + 1]!;
  const sum = (v[a + 1]! + low) | 0;
  const carry = sum >>> 0 < low >>> 0 ? 1 : 0;
  const upper = (v[a]! + high + carry) | 0;
  v[a] = upper;
  v[a + 1] = sum;
  v[b] = ((high << by) | (low >>> (32 - by))) ^ upper;
  v[b + 1] = ((low << by) | (high >>> (32 - by))) ^ sum;
}

/** Rotates a word by 32. */
function swap(v: Int32Array, a: number): void {
  const high = v[a]!;
  v[a] = v[a + 1]!;
  v[a + 1] = high;
}
