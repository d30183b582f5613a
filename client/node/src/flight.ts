// SPDX-License-Identifier: Apache-2.0
// A sequence of packets that are sent until each is confirmed, at most a window of them at once.
//
// Intervals are docs/protocol.md's. The window follows TCP's additive increase and multiplicative decrease (RFC 5681), with a floor that
// keeps enough packets coming behind a lost one to notice the loss.

const FIRST_INTERVAL = 20; // ms
const LAST_INTERVAL = 500;

const FIRST_WINDOW = 64;
const MIN_WINDOW = 32;
const MAX_WINDOW = 512;

const REORDER_LIMIT = 8; // a packet counts as lost once a packet sent so many transmissions later is confirmed

/** A packet that was sent and is not confirmed. */
interface Slot {
  sent: number;
  order: number; // of its last transmission
  tries: number;
  lost: boolean;
}

/** How long to wait for a confirmation before sending again. */
function interval(slot: Slot): number {
  return Math.min(FIRST_INTERVAL * 2 ** Math.min(slot.tries, 5), LAST_INTERVAL);
}

/** It is told the time, in ms, and sends nothing itself. */
export class Flight {
  window = FIRST_WINDOW;
  /** No packet expires before. */
  expiry = Infinity;

  private readonly slots = new Map<number, Slot>(); // by index, which ascends
  private granted: number | undefined; // packets that the receiver has allowed so far, once it grants any
  private lost = 0; // to be sent again
  private threshold = MAX_WINDOW; // where doubling the window per round trip ends
  private credit = 0; // confirmations towards the next single step
  private sends: number; // transmissions so far
  private newest = 0; // the latest transmission known to have arrived
  private scanned = 0; // newest, when last looked for lost packets
  private recovery = 0; // losses among transmissions up to here have been paid for
  private doubts = 0;

  /** once: never send a packet twice. next: the first packet that was never sent; those before it are confirmed. */
  constructor(
    readonly count: number,
    readonly once: boolean,
    public next = 0,
  ) {
    this.sends = next;
  }

  /** Every packet before it is confirmed. */
  get base(): number {
    const first = this.slots.keys().next();
    return first.done ? this.next : first.value;
  }

  get done(): boolean {
    return this.next === this.count && this.slots.size === 0;
  }

  /** Whether there is a packet to send now. */
  sendable(): boolean {
    if (this.slots.size - this.lost >= this.window) {
      return false;
    }
    return this.lost > 0 || this.next < Math.min(this.count, this.granted ?? this.count, this.base + MAX_WINDOW);
  }

  /** Takes in what an acknowledgement grants: 0 is no limit. The largest grant stands. */
  grant(packets: number): void {
    this.granted = packets > 0 ? Math.max(packets, this.granted ?? FIRST_WINDOW) : undefined;
  }

  /** Takes a packet as sent now, lost ones first. */
  pick(now: number): { index: number; again: boolean } {
    if (this.lost > 0) {
      for (const [index, slot] of this.slots) {
        if (slot.lost) {
          this.lost--;
          this.sent(slot, now);
          return { index, again: true };
        }
      }
    }
    const slot = { sent: now, order: 0, tries: 0, lost: false };
    this.slots.set(this.next, slot);
    this.sent(slot, now);
    return { index: this.next++, again: false };
  }

  private sent(slot: Slot, now: number): void {
    slot.sent = now;
    slot.order = ++this.sends;
    slot.lost = false;
    if (!this.once) {
      this.expiry = Math.min(this.expiry, now + interval(slot));
    }
  }

  /** Says that a packet arrived. Returns whether that is news. */
  confirm(index: number): boolean {
    const slot = this.slots.get(index);
    if (slot === undefined) {
      return false;
    }
    this.slots.delete(index);
    if (slot.lost) {
      this.lost--;
    }
    if (slot.tries === 0) {
      // else nobody knows which transmission arrived (Karn and Partridge, SIGCOMM 1987)
      this.newest = Math.max(this.newest, slot.order);
    }
    this.grow();
    return true;
  }

  confirmAll(): void {
    this.slots.clear();
    this.next = this.count;
    this.lost = 0;
    this.expiry = Infinity;
  }

  /** Takes the last packet's confirmation back, for when all packets are confirmed and yet no answer came. */
  doubt(now: number): void {
    const slot = { sent: now, order: 0, tries: this.doubts, lost: false };
    this.doubts = Math.min(this.doubts + 1, 8);
    this.slots.set(this.count - 1, slot);
    this.sent(slot, now);
  }

  /** Finds the packets that are lost by now: those that waited for too long, and those that many later ones overtook. */
  expire(now: number): void {
    if (this.once || (now < this.expiry && this.newest - this.scanned < REORDER_LIMIT)) {
      return;
    }
    this.scanned = this.newest;
    this.expiry = Infinity;
    for (const slot of this.slots.values()) {
      const due = slot.sent + interval(slot);
      if (slot.lost) {
        continue;
      }
      if (due > now && slot.order + REORDER_LIMIT > this.newest) {
        this.expiry = Math.min(this.expiry, due);
      } else {
        this.lose(slot);
      }
    }
  }

  private lose(slot: Slot): void {
    slot.lost = true;
    slot.tries = Math.min(slot.tries + 1, 8);
    this.lost++;
    if (slot.order > this.recovery) {
      // once per window, not once per packet
      this.recovery = this.sends;
      this.window = this.threshold = Math.max(Math.floor(this.window / 2), MIN_WINDOW);
    }
  }

  private grow(): void {
    if (this.window >= MAX_WINDOW) {
      return;
    }
    if (this.window < this.threshold) {
      this.window++;
    } else if (++this.credit >= this.window) {
      this.credit = 0;
      this.window++;
    }
  }
}
