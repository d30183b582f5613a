// SPDX-License-Identifier: Apache-2.0
// When packets are sent, and when they count as lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Flight } from "../src/flight.js";

function sendAll(flight: Flight, now: number): { index: number; again: boolean }[] {
  const sent = [];
  while (flight.sendable()) {
    sent.push(flight.pick(now));
  }
  return sent;
}

test("a packet that eight others overtook is lost", () => {
  for (const [overtaken, lost] of [[7, []], [8, [{ index: 0, again: true }]]] as const) { // prettier-ignore
    const flight = new Flight(20, false);
    sendAll(flight, 0);
    for (let index = 1; index <= overtaken; index++) {
      flight.confirm(index);
    }
    flight.expire(1);
    assert.deepEqual(sendAll(flight, 1), lost);
  }
});

test("late packets are lost and shrink the window once", () => {
  const flight = new Flight(1000, false);
  assert.equal(sendAll(flight, 0).length, 64);
  flight.expire(19.9);
  assert.ok(!flight.sendable());
  flight.expire(20.1);
  assert.equal(flight.window, 32);
  assert.deepEqual(sendAll(flight, 20.1), Array.from({ length: 32 }, (_, index) => ({ index, again: true }))); // prettier-ignore
  flight.expire(60.2);
  assert.equal(flight.window, 32);
});

test("the window grows to its limit from the first unconfirmed packet", () => {
  const flight = new Flight(5000, true);
  for (;;) {
    const sent = sendAll(flight, 0).filter(({ index }) => index > 0);
    if (sent.length === 0) {
      break;
    }
    sent.forEach(({ index }) => flight.confirm(index));
  }
  assert.deepEqual([flight.base, flight.next], [0, 512]);
  flight.confirm(0);
  assert.equal(flight.base, 512);
  assert.ok(flight.sendable());
});

test("a packet's arrival is news once", () => {
  const flight = new Flight(3, false);
  sendAll(flight, 0);
  assert.deepEqual([1, 1, 7, 0, 2].map((index) => flight.confirm(index)), [true, false, false, true, true]); // prettier-ignore
  assert.ok(flight.done);
  flight.doubt(1000);
  assert.deepEqual([flight.done, flight.base], [false, 2]);
  flight.expire(1021);
  assert.deepEqual(sendAll(flight, 1021), [{ index: 2, again: true }]);
});

test("grants limit what is sent", () => {
  const flight = new Flight(1000, false);
  assert.equal(sendAll(flight, 0).length, 64);
  for (let index = 0; index < 64; index++) {
    flight.confirm(index);
  }
  for (const [packets, sent] of [[80, 16], [70, 0], [90, 10]] as const) { // prettier-ignore
    flight.grant(packets);
    assert.equal(sendAll(flight, 0).length, sent);
  }
  flight.grant(0);
  assert.ok(sendAll(flight, 0).length > 64);
});
