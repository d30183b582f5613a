// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a call, and what to do about it.

import { Code, Fault } from "./wire.js";

/** The base of all errors of a call. */
export class LambdanicError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came in time. The cause is the network's last error, if any. */
export class DeadlineExceeded extends LambdanicError {
  constructor(cause?: Error) {
    super("no answer in time", { cause });
  }
}

/** The body needs more packets than the protocol can count. */
export class RequestTooLarge extends LambdanicError {
  constructor(length: number, most: number) {
    super(`request of ${length} bytes exceeds ${most}: split it`);
  }
}

/** The reply is longer than maxReply allows. */
export class ReplyTooLarge extends LambdanicError {
  constructor(length: number) {
    super(`reply of ${length} bytes is too large: raise maxReply`);
  }
}

/** The client was closed. */
export class Closed extends LambdanicError {
  constructor() {
    super("the client was closed");
  }
}

/** The gateway refused, or the server is not a gateway. */
export class GatewayError extends LambdanicError {}

/** The gateway knows no function of that name. */
export class NoSuchFunction extends GatewayError {}

/** The daemon refused to have an ikernel do something, or cannot be reached. */
export class IkernelError extends LambdanicError {}

/**
 * An ikernel gave up. Its sockets get all of their datagrams again; its registers and rings can still be read. The message says why, and so
 * does code, if fault or waitFault gave it.
 */
export class IkernelFault extends IkernelError {
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

/** A register had another value than a transaction expected. Nothing was written. */
export class RegisterDiffers extends IkernelError {}

/** An error packet: the server's reason not to answer. Each code of the protocol has a class. */
export class RPCError extends LambdanicError {
  /** need, with TooLarge, is how many bytes of room one packet would need; 0 where no size is enough. */
  constructor(
    readonly code: number,
    readonly need = 0,
    reason = "unknown reason",
  ) {
    super(`λ-RPC error ${code}: ${reason}${need > 0 ? `: ${need} bytes of room are needed` : ""}`);
  }
}

export class UnknownWorkload extends RPCError {}
export class OverQuota extends RPCError {}
export class BadTag extends RPCError {}
export class Malformed extends RPCError {}

const faults: Partial<Record<number, string>> = {
  [Fault.Own]: "the lambda gave the request up: RETURN_FAULT, abort(), or a reply that does not fit",
  [Fault.Time]: "it ran longer than limits.time",
  [Fault.Bounds]: "it used an address outside of its memory",
  [Fault.Recursion]: "it called itself too deep",
  [Fault.Memory]: "it asked for more memory than there is",
  [Fault.Division]: "it divided by zero",
  [Fault.Crash]: "its process died",
};

/** The lambda failed. fault says why; 0 where the server does not say. */
export class LambdaFault extends RPCError {
  readonly fault: number;

  constructor(code: number, fault = 0, reason?: string) {
    const why = faults[fault];
    super(code, 0, `${reason ?? "the lambda failed"}${why === undefined ? "" : `: ${why}`}: see \`lambdanic describe NAME\``);
    this.fault = fault;
  }
}

export class TooLarge extends RPCError {}
export class Busy extends RPCError {}
export class ServiceTimeout extends RPCError {}
export class Unreachable extends RPCError {}
export class Stale extends RPCError {}

/** The server found that the deadline had passed. */
export class TooLate extends RPCError {}

const kinds: Record<Code, [typeof RPCError, string]> = {
  [Code.UnknownWorkload]: [UnknownWorkload, "unknown workload: look the lambda's name up again"],
  [Code.OverQuota]: [OverQuota, "over quota: slow down"],
  [Code.BadTag]: [BadTag, "bad tag: check the namespace's key"],
  [Code.Malformed]: [Malformed, "malformed packet"],
  [Code.LambdaFault]: [LambdaFault, "the lambda failed on this request"],
  [Code.TooLarge]: [TooLarge, "request or reply too large"],
  [Code.Busy]: [Busy, "busy: try again later"],
  [Code.Timeout]: [ServiceTimeout, "an external service did not answer in time"],
  [Code.Unreachable]: [Unreachable, "an external service cannot be reached"],
  [Code.Stale]: [Stale, "the revision or reply is gone: start over"],
  [Code.Deadline]: [TooLate, "the deadline was over before the lambda could answer"],
};

/** The error of an error packet's code. For a LambdaFault, need is its Fault. */
export function errorOf(code: number, need = 0): RPCError {
  const [kind, reason] = kinds[code as Code] ?? [RPCError, undefined];
  return new kind(code, need, reason);
}
