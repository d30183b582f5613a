// SPDX-License-Identifier: Apache-2.0
// The calls in flight towards one server: their attempts, deadlines and turns. It does no I/O and reads no clock; times are in ms.

import { randomBytes } from "node:crypto";

import { Closed, DeadlineExceeded, RequestTooLarge, Stale, TooLarge, type LambdanicError } from "./errors.js";
import { Exchange, deadlineUs } from "./exchange.js";
import { BadPacket, NotRPC, parse } from "./packet.js";
import type { Tagger } from "./tag.js";
import { Flag, MAGIC, MAX_MESSAGE, Type, VERSION, type Header } from "./wire.js";

const MAX_ATTEMPTS = 8; // how often a call starts over because its revision went away while it ran
const MAX_ROOMS = 4096; // bounds the memory of a client that uses ever new methods

const REFUSALS: ReadonlySet<string | undefined> = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"]); // ICMP messages

export interface Options {
  /** A call without a deadline fails after so many ms without progress: 5000. */
  timeout?: number;
  /** Bytes for replies of methods that were never called before: 512. */
  replyRoom?: number;
  /** Longer replies are refused, in bytes: 90 MiB. */
  maxReply?: number;
  /** If false, every packet is sent once: true. */
  resend?: boolean;
}

export interface CallOptions {
  /** Its meaning is the lambda's: 0. */
  method?: number;
  /** How many ms the call may take in all. */
  deadline?: number;
  /**
   * The expected length of the reply: so many bytes come back in one packet. Without it, the length of earlier replies to the method. A
   * longer reply arrives too, in more packets.
   */
  replyRoom?: number;
  /**
   * Asks the server to execute the request at most once while it remembers it: what is sent again is answered from memory. The reply to a
   * request of one packet then has to fit one packet, and the call never starts over: Stale and TooLarge are final, as is
   * DeadlineExceeded, after which nobody knows.
   */
  once?: boolean;
  /** Gives the call up. */
  signal?: AbortSignal;
}

/** What a lambda answered. */
export interface Reply {
  body: Uint8Array;
  /** The lambda's own verdict, a Status where it keeps to those. */
  status: number;
  /** Which revision of the lambda answered. */
  revision: number;
  /** Packets that had to be sent again. */
  resends: number;
}

/** The counters of a client. Packets from other addresses than the server's never reach it: the kernel refuses them. */
export class Stats {
  calls = 0; // attempts
  restarts = 0; // attempts beyond a call's first
  sent = 0; // packets
  resent = 0; // packets sent again
  received = 0; // packets
  duplicates = 0; // packets that said nothing new
  stray = 0; // packets for no call in flight: late, or forged
  malformed = 0; // packets that are not λ-RPC, or contradict themselves or their call
}

/** A request on its way. */
export interface Call {
  readonly workload: number;
  readonly body: Uint8Array;
  readonly options: CallOptions;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
  readonly started: number;
  /** It is time to ask where the function is. */
  readonly onSilent: (() => void) | undefined;
  refused: boolean; // the network refused a packet, and the refusal is not yet handled
  exchange: Exchange;
  room: number;
  deadline: number;
  wake: number;
  attempt: number;
  resends: number;
}

export class Session {
  private id = randomBytes(8).readBigUInt64BE(); // a random start: others cannot guess it, and IDs of earlier sessions are not repeated
  private readonly calls = new Map<bigint, Call>(); // by request ID
  private ready = new Set<Call>(); // have to be polled now
  private wake = Infinity; // all other calls need no poll before
  private readonly rooms = new Map<string, number>(); // how long the replies of a method were
  private said: { error: Error; at: number } | undefined; // by the network

  /** single is how many bytes of message fit one packet. Without a tagger, packets have no tags. */
  constructor(
    private readonly single: number,
    private readonly options: Required<Options>,
    private readonly stats: Stats,
    private readonly tagger?: Tagger,
  ) {}

  get idle(): boolean {
    return this.calls.size === 0;
  }

  /**
   * Begins a call; the next poll returns its packets. A call that was made elsewhere before has the time that it had left, and was
   * given up.
   */
  start(
    now: number,
    workload: number,
    body: Uint8Array,
    options: CallOptions,
    resolve: Call["resolve"],
    reject: Call["reject"],
    move: { before?: Call | undefined; onSilent?: (() => void) | undefined } = {},
  ): Call {
    if (body.length > MAX_MESSAGE) {
      throw new RequestTooLarge(body.length, MAX_MESSAGE);
    }
    const { before, onSilent } = move;
    const deadline = before?.deadline ?? now + (options.deadline ?? this.options.timeout);
    const room = this.roomFor(workload, options);
    const life = { started: before?.started ?? now, room, deadline, wake: Infinity, attempt: 0, resends: before?.resends ?? 0, refused: false, onSilent };
    const exchange = this.exchange(now, workload, body, options, room, deadline);
    exchange.moved = before?.exchange.moved ?? exchange.moved;
    const call: Call = { workload, body, options, resolve, reject, exchange, ...life };
    this.begin(call);
    return call;
  }

  /** Gives a call up, with a reason. Returns the packets that tell the server. */
  cancel(call: Call, reason: Error): Buffer[] {
    const out: Buffer[] = [];
    if (this.calls.get(call.exchange.head.request) === call) {
      call.exchange.release(out);
      this.leave(call);
      call.reject(reason);
    }
    this.tagger?.tag(out);
    return out;
  }

  /** Ends all calls. */
  close(): void {
    for (const call of [...this.calls.values()]) {
      this.leave(call);
      call.reject(new Closed());
    }
  }

  /** Notes an error for calls that may end, or have to go elsewhere, because of it. */
  networkSaid(error: Error, now: number): void {
    this.said = { error, at: now };
    if (REFUSALS.has((error as NodeJS.ErrnoException).code)) {
      for (const call of this.calls.values()) {
        call.refused = true;
        this.ready.add(call);
      }
    }
  }

  /** Takes in a datagram; the next poll acts on it. */
  receive(datagram: Uint8Array, now: number): void {
    this.stats.received++;
    let packet;
    try {
      packet = parse(datagram);
    } catch (e) {
      if (!(e instanceof NotRPC || e instanceof BadPacket)) {
        throw e;
      }
      this.stats.malformed++;
      return;
    }
    const call = this.calls.get(packet.header.request);
    if (call === undefined) {
      this.stats.stray++;
      return;
    }
    if (this.tagger?.accepts(packet.header, datagram) === false) {
      call.exchange.distrust(packet.header);
    } else {
      call.exchange.receive(now, packet.header, packet.payload);
    }
    this.ready.add(call);
  }

  /** Ends calls that are over. Returns the packets that are due, and when to poll again if nothing arrives before. */
  poll(now: number): { packets: Buffer[]; wake: number } {
    if (now >= this.wake) {
      this.wake = Infinity;
      for (const call of this.calls.values()) {
        if (call.wake <= now) {
          this.ready.add(call);
        } else {
          this.wake = Math.min(this.wake, call.wake);
        }
      }
    }
    const { ready } = this;
    this.ready = new Set();
    const packets: Buffer[] = [];
    for (const call of ready) {
      this.pollCall(call, now, packets);
    }
    this.tagger?.tag(packets);
    this.stats.sent += packets.length;
    return { packets, wake: this.ready.size > 0 ? now : this.wake };
  }

  private pollCall(call: Call, now: number, out: Buffer[]): void {
    const { exchange } = call;
    if (!exchange.finished) {
      if (call.options.deadline === undefined) {
        call.deadline = exchange.moved + this.options.timeout;
      }
      if (now < call.deadline) {
        call.wake = Math.min(exchange.poll(now, out), call.deadline);
        this.wake = Math.min(this.wake, call.wake);
        if (call.onSilent !== undefined && exchange.asks(call.refused)) {
          call.onSilent();
        }
        call.refused = false;
        return;
      }
      exchange.error = this.tooLate(call);
    }
    exchange.release(out);
    this.leave(call);
    const { error, finished, first } = exchange;
    if (error !== undefined && finished && this.startsOver(call, error)) {
      this.stats.restarts++;
      call.attempt++;
      call.exchange = this.exchange(now, call.workload, call.body, call.options, call.room, call.deadline);
      this.begin(call);
    } else if (error !== undefined || first === undefined) {
      call.reject(error ?? this.tooLate(call));
    } else {
      this.learn(call, first.messageLen);
      call.resolve({ body: exchange.reply, status: first.code, revision: first.revision, resends: call.resends });
    }
  }

  /** An attempt at a call, with a request ID of its own. */
  private exchange(now: number, workload: number, body: Uint8Array, options: CallOptions, room: number, deadline: number): Exchange {
    this.id = BigInt.asUintN(64, this.id + 1n);
    const head: Header = {
      magic: MAGIC, version: VERSION, type: Type.Request, flags: options.once ? Flag.Once : 0, code: 0, length: 0, workload, revision: 0, request: this.id,
      index: 0, count: 1, messageLen: 0, method: options.method ?? 0, deadlineUs: deadlineUs(deadline - now), client: 0, sequence: 0, grant: 0, tag: 0n,
    }; // prettier-ignore
    const due = options.deadline === undefined ? undefined : deadline;
    const { maxReply, resend } = this.options;
    return new Exchange(now, head, body, { single: this.single, room, maxReply, once: !resend, due });
  }

  private begin(call: Call): void {
    this.calls.set(call.exchange.head.request, call);
    this.ready.add(call);
    this.stats.calls++;
  }

  private leave(call: Call): void {
    const { exchange } = call;
    this.calls.delete(exchange.head.request);
    this.ready.delete(call);
    call.resends += exchange.resent;
    this.stats.resent += exchange.resent;
    this.stats.duplicates += exchange.duplicates;
    this.stats.malformed += exchange.malformed;
  }

  /** Whether a call that ended with an error is tried again. */
  private startsOver(call: Call, error: LambdanicError): boolean {
    if (call.attempt >= MAX_ATTEMPTS || call.options.once) {
      return false;
    }
    if (error instanceof TooLarge && call.exchange.head.count === 1 && call.room < error.need && error.need <= this.single) {
      call.room = error.need;
      return true;
    }
    return error instanceof Stale;
  }

  /** What the server said last or, if it said nothing, that no answer came. */
  private tooLate(call: Call): LambdanicError {
    const error = new DeadlineExceeded(this.said !== undefined && this.said.at >= call.started ? this.said.error : undefined);
    const { told } = call.exchange;
    if (told === undefined) {
      return error;
    }
    told.cause = error;
    return told;
  }

  private roomFor(workload: number, options: CallOptions): number {
    if (options.once) {
      return this.single; // a longer reply would make the lambda run again
    }
    const known = this.rooms.get(`${workload} ${options.method ?? 0}`) ?? 0;
    return Math.min(options.replyRoom || Math.max(known, this.options.replyRoom), this.single);
  }

  private learn(call: Call, length: number): void {
    if (call.options.replyRoom || length <= this.options.replyRoom) {
      return;
    }
    if (this.rooms.size >= MAX_ROOMS) {
      this.rooms.clear();
    }
    const method = `${call.workload} ${call.options.method ?? 0}`;
    this.rooms.set(method, Math.max(this.rooms.get(method) ?? 0, Math.min(length, this.single)));
  }
}
