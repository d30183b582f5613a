// SPDX-License-Identifier: Apache-2.0
// One attempt at a call: which packets to send, and what the packets that arrive mean. It does no I/O and reads no clock.

import { Busy, ReplyTooLarge, errorOf, type LambdanicError, type RPCError } from "./errors.js";
import { Flight } from "./flight.js";
import { BadPacket, encode, packets, placement } from "./packet.js";
import { ASK_AFTER, Code, FRAGMENT, Flag, Status, Type, type Header } from "./wire.js";

const BATCH = 64; // packets that are sent before the next look at what arrived
const ACK_EVERY = 16; // packets of a request share an acknowledgement, whose bitmap covers 64
const NOTHING = new Uint8Array(0);

export interface Limits {
  single: number; // bytes of message that one packet holds
  room: number; // what a request of one packet is padded to
  maxReply: number; // bytes
  once: boolean; // never send a packet twice
  due: number | undefined; // when the caller gives up; without it, progress decides
}

/** A header's deadline for a call that ends after so many ms. A call that is over gets the least value, as 0 means none. */
export function deadlineUs(wait: number): number {
  return Math.max(1, Math.min(Math.floor(wait * 1000), 0xffffffff));
}

function errorIn(header: Header): RPCError {
  return errorOf(header.code, header.code === Code.TooLarge || header.code === Code.LambdaFault ? header.messageLen : 0);
}

export class Exchange {
  readonly head: Header; // of the request's packets
  /** The first response that arrived. */
  first: Header | undefined;
  reply = NOTHING;
  finished = false;
  error: LambdanicError | undefined;
  told: RPCError | undefined; // why the server did not take a packet that will be sent again
  moved: number; // when the last packet got through
  resent = 0;
  duplicates = 0;
  malformed = 0;

  private readonly fragment: number; // bytes of the request in each packet
  private readonly up: Flight; // the request's packets
  private down: Flight; // pulls of the reply; packet 0 needs no pull
  private pulling = false;
  private acked = false; // an acknowledgement came: the server keeps the message, and answers it as a whole
  private parted = false; // a response to a later packet came: the server answers each packet
  private probed = false; // a later packet was sent again, to provoke such a response
  private guessed = false; // pulling because that response did not come
  private size = 0; // bytes per packet of the reply but the last
  private silent = 0; // resends of the first unacknowledged packet since the last packet arrived
  private asked = false; // asked the directory since the last packet arrived
  private reached = 0; // packets of request and reply that are through

  constructor(
    now: number,
    head: Header,
    private readonly body: Uint8Array,
    private readonly limits: Limits,
  ) {
    const { count, size } = packets(body.length, limits.single);
    this.head = { ...head, count, messageLen: body.length };
    this.fragment = size;
    this.up = new Flight(count, limits.once);
    this.down = new Flight(0, limits.once);
    this.moved = now;
  }

  /** Adds packets that are due to out, and says when to poll again if nothing arrives before. */
  poll(now: number, out: Buffer[]): number {
    if (this.finished) {
      return Infinity;
    }
    if (this.limits.due !== undefined) {
      this.head.deadlineUs = deadlineUs(this.limits.due - now);
    }
    const flight = this.pulling ? this.down : this.up;
    flight.expire(now);
    for (let i = 0; i < BATCH; i++) {
      if (!flight.sendable()) {
        return flight.expiry;
      }
      const { index, again } = flight.pick(now);
      if (again) {
        this.resent++;
        if (index === flight.base) {
          this.silent++;
        }
        this.probed ||= index > 0;
      }
      out.push(this.pulling ? this.pullPacket(index, again) : this.requestPacket(index, again, !flight.sendable()));
    }
    return flight.sendable() ? now : flight.expiry;
  }

  /** last asks for an acknowledgement, because no more packets will be sent now. */
  private requestPacket(index: number, again: boolean, last: boolean): Buffer {
    const payload = this.body.subarray(index * this.fragment, (index + 1) * this.fragment);
    let { flags } = this.head;
    let { room } = this.limits;
    if (this.head.count > 1) {
      // The last packet is padded like the others, because any of them may complete the message and carry the reply.
      room = FRAGMENT;
      if (again || last || index % ACK_EVERY === 0 || index % ACK_EVERY === ACK_EVERY - 1) {
        flags |= Flag.AckWanted;
      }
    }
    if (again) {
      flags |= Flag.Resend;
    }
    return encode({ ...this.head, index, flags, length: payload.length }, payload, room);
  }

  private pullPacket(index: number, again: boolean): Buffer {
    const { count, revision } = this.first!;
    const payload = this.head.count === 1 ? this.body : NOTHING;
    const flags = again ? this.head.flags | Flag.Resend : this.head.flags;
    const header = { ...this.head, type: Type.Pull, index, count, flags, revision, messageLen: this.size, length: payload.length };
    return encode(header, payload, this.size);
  }

  /** Adds the acknowledgement that lets the server forget message and reply, if it keeps them. */
  release(out: Buffer[]): void {
    if (this.head.count === 1 && (this.first?.count ?? 1) === 1 && (this.head.flags & Flag.Once) === 0) {
      return;
    }
    const header = { ...this.head, type: Type.Ack, flags: this.head.flags | Flag.Done, revision: this.first?.revision ?? 0 };
    out.push(encode(header, NOTHING, 0));
  }

  /** Takes in a packet with this exchange's request ID. */
  receive(now: number, header: Header, payload: Uint8Array): void {
    this.silent = 0;
    this.asked = false;
    if (this.finished) {
      this.duplicates++;
    } else if (header.workload !== this.head.workload) {
      this.malformed++;
    } else if (header.type === Type.Error) {
      this.refused(header);
    } else if (header.type === Type.Ack) {
      this.acknowledge(now, header, payload);
    } else if (header.type === Type.Response) {
      this.respond(header, payload);
    } else {
      this.malformed++;
    }
    // Progress counts upwards only, so that a server whose packets say nothing new cannot keep a call alive.
    const reached = this.up.base + (this.pulling ? this.down.base : 0);
    if (reached > this.reached) {
      this.reached = reached;
      this.moved = now;
    }
  }

  /**
   * Whether it is time to ask where the function is, which it is once per silence: its place refused a packet, or has been silent for too
   * long. A packet that may be executed but once never goes elsewhere, as the silent place may have executed it, and a refusal does not
   * say of which packet it is.
   */
  asks(refused: boolean): boolean {
    const stays = this.limits.once || (this.head.flags & Flag.Once) !== 0;
    if (this.finished || this.asked || stays || (!refused && this.silent < ASK_AFTER)) {
      return false;
    }
    this.asked = true;
    return true;
  }

  private refused(header: Header): void {
    if (header.code === Code.Stale && this.guessed) {
      // wrong: there is nothing to pull
      this.pulling = false;
      this.parted = true;
      return;
    }
    const error = errorIn(header);
    if (error instanceof Busy && (this.head.flags & Flag.Once) !== 0) {
      this.told = error; // it did not run, so it is sent again after the growing resend interval
      return;
    }
    this.fail(error);
  }

  /**
   * Takes in a packet that is not tagged as it should be. It may be anybody's, so it changes nothing. But an error may be the server's, which
   * does not know the key.
   */
  distrust(header: Header): void {
    if (header.type === Type.Error) {
      this.told = errorIn(header);
    } else {
      this.malformed++;
    }
  }

  private fail(error: LambdanicError): void {
    this.error = error;
    this.finished = true;
  }

  private acknowledge(now: number, header: Header, payload: Uint8Array): void {
    if (payload.length !== 8 || header.index >= this.head.count || this.head.count === 1) {
      this.malformed++;
      return;
    }
    if (this.pulling) {
      this.duplicates++;
      return;
    }
    this.acked = true;
    if (this.first !== undefined && !this.parted) {
      this.pull(this.first);
      return;
    }
    const base = header.index - (header.index % 64);
    for (let bit = 0; bit < 64; bit++) {
      if ((payload[7 - (bit >> 3)]! >> (bit & 7)) & 1) {
        this.up.confirm(base + bit);
      }
    }
    this.up.grant(header.grant);
    if (this.up.done) {
      this.up.doubt(now);
    }
  }

  private respond(header: Header, payload: Uint8Array): void {
    if (this.failed(header)) {
      this.end(header, payload);
      return;
    }
    let place;
    try {
      place = placement(header);
    } catch (e) {
      if (!(e instanceof BadPacket)) {
        throw e;
      }
      this.malformed++;
      return;
    }
    if (this.first === undefined) {
      this.begin(header, place.size);
    }
    const { first } = this;
    if (first === undefined || this.contradicts(first, header, place.size)) {
      return;
    }
    if (!this.pulling && this.whole(header)) {
      if (header.index !== 0) {
        this.malformed++;
        return;
      }
      this.reply.set(payload, 0);
      this.pull(first);
      return;
    }
    this.take(header, place.offset, payload);
    if (!this.finished && !this.pulling && !this.parted && this.probed) {
      this.guessed = true;
      this.pull(first);
    }
  }

  /**
   * Whether the lambda failed on a packet of the request, or on the whole request, so that this is the whole answer.
   * The answers to other packets no longer matter then.
   */
  private failed(header: Header): boolean {
    if (this.head.count === 1 || header.code === Status.OK || (this.pulling && !this.guessed)) {
      return false;
    }
    return header.index < this.head.count && (header.messageLen === header.length || !this.whole(header));
  }

  /** Takes the packet as the whole answer, in place of what arrived before. */
  private end(header: Header, payload: Uint8Array): void {
    this.begin({ ...header, index: 0, count: 1, messageLen: payload.length }, payload.length);
    if (this.error === undefined) {
      this.reply.set(payload, 0);
      this.finished = true;
    }
  }

  /** Takes header as the first response. */
  private begin(header: Header, size: number): void {
    if (header.index > 0 && header.count !== this.head.count) {
      this.malformed++;
      return;
    }
    if (header.messageLen > this.limits.maxReply) {
      this.fail(new ReplyTooLarge(header.messageLen));
      return;
    }
    this.first = header;
    this.size = size;
    this.reply = new Uint8Array(header.messageLen);
  }

  /** Whether the packet belongs to another answer than the one that began, maybe by another revision. The first one stands. */
  private contradicts(first: Header, header: Header, size: number): boolean {
    const same = header.count === first.count && header.messageLen === first.messageLen && header.code === first.code;
    if (same && header.revision === first.revision && size === this.size) {
      return false;
    }
    this.duplicates++;
    if (!this.pulling && header.revision !== first.revision) {
      this.fail(errorOf(Code.Stale)); // in mode stream nobody will complete the first one
    }
    return true;
  }

  /** Puts one packet of the reply where it belongs. */
  private take(header: Header, offset: number, payload: Uint8Array): void {
    if (this.guessed && header.index >= this.down.next) {
      this.pulling = false; // nobody pulled it: the guess was wrong
    }
    this.parted ||= !this.pulling && header.index > 0;
    const flight = this.pulling ? this.down : this.up;
    if (!flight.confirm(header.index)) {
      this.duplicates++;
      return;
    }
    this.reply.set(payload, offset);
    this.finished = flight.done;
    if (this.guessed && this.pulling) {
      this.up.confirm(header.index);
    }
  }

  /**
   * Whether a response certainly answers the request as a whole. If not, it may be one of a series, one for each packet. The two look alike
   * where the reply has as many packets as the request, and what else arrives must decide: after an acknowledgement it is whole; after a
   * response to a later packet, one of a series; and where a later packet was sent again and still packet 0 is all that comes back, a pull
   * finds out.
   */
  private whole(header: Header): boolean {
    const { count } = this.head;
    return !this.parted && (count === 1 || header.count !== count || this.acked || (header.flags & Flag.Done) !== 0);
  }

  /** Goes on to fetch what is left of a reply whose first packet has arrived. */
  private pull(first: Header): void {
    if (!this.guessed) {
      this.up.confirmAll();
    }
    this.pulling = true;
    if (first.count === 1) {
      this.finished = true;
      return;
    }
    this.down = new Flight(first.count, this.limits.once, 1);
    if (this.guessed) {
      this.down.window = 1;
    }
  }
}
