// SPDX-License-Identifier: Apache-2.0

import { MAX_UINT32, checkFlag, checkOptions, checkText, checkTime, checkWhole, given, ownBytes } from "./arguments.js";
import { Endpoint, Moved, splitAddress, type Whereabouts } from "./endpoint.js";
import { Closed, DeadlineExceeded, RPCError, UnknownWorkload } from "./errors.js";
import { Gateway, checkGateway, type GatewayOptions } from "./gateway.js";
import { Stats, type CallOptions, type Options, type Reply } from "./session.js";
import { Key } from "./tag.js";
import { MAX_MESSAGE, PORT } from "./wire.js";

export interface ClientOptions extends Options, GatewayOptions {
  /** The address for calls by workload ID: HOST, HOST:PORT or [IPv6]:PORT. */
  address?: string;
  /** The gateway for calls by name: unix:PATH, HOST:PORT, [IPv6]:PORT or its URL. */
  gateway?: string;
  /**
   * A key of the functions' namespace, as `lambdanic namespace key add` writes it. All packets are tagged by it, and only answers that are tagged
   * by it are taken. An error without a tag may be anybody's, so it ends no call: calls are rejected with it at the deadline.
   */
  key?: string;
  /** If false, tags are over headers alone: they take less time, but payloads can be changed on the way: true. */
  tagPayload?: boolean;
}

const checkSize = (name: string, value: unknown): void => checkWhole(name, value, MAX_MESSAGE);

const CLIENT_CHECKS = {
  address(name: string, value: unknown): void {
    checkText(name, value);
    splitAddress(value as string, PORT);
  },
  gateway: checkGateway, credentials: checkText, namespace: checkText,
  timeout: checkTime, replyRoom: checkSize, maxReply: checkSize, resend: checkFlag,
  key: (_: string, value: unknown): void => void new Key(value), tagPayload: checkFlag,
}; // prettier-ignore

const CALL_CHECKS = {
  method: (name: string, value: unknown): void => checkWhole(name, value, MAX_UINT32),
  deadline: checkTime,
  replyRoom: checkSize,
  once: checkFlag,
  signal(name: string, value: unknown): void {
    if (!(value instanceof AbortSignal)) {
      throw new TypeError(`${name} is no AbortSignal`);
    }
  },
};

/**
 * Makes any number of calls at once.
 *
 *     const client = new Client({ address: "10.0.0.2" });
 *     const reply = await client.call(65537, Buffer.from("/hello"), { deadline: 100 });
 */
export class Client {
  readonly stats = new Stats();
  private readonly address: string | undefined;
  private readonly gateway: Gateway | undefined;
  private readonly options: Required<Options>;
  private readonly tagging: { key: Key; payload: boolean } | undefined;
  private readonly endpoints = new Map<string, Promise<Endpoint>>();
  private closed = false;

  /** Nothing is sent yet. */
  constructor(settings: ClientOptions) {
    checkOptions("options", settings, CLIENT_CHECKS);
    const { address, gateway, credentials, namespace, key, tagPayload, ...options } = settings;
    if (address === undefined && gateway === undefined) {
      throw new TypeError("give the address of a server or of a gateway");
    }
    this.options = { timeout: 5000, replyRoom: 512, maxReply: MAX_MESSAGE, resend: true, ...given(options) };
    this.tagging = key === undefined ? undefined : { key: new Key(key), payload: tagPayload ?? true };
    this.address = address;
    const { timeout } = this.options;
    this.gateway = gateway === undefined ? undefined : new Gateway(gateway, { credentials: credentials ?? "", namespace: namespace ?? "", timeout });
  }

  /** Calls a function by its name or workload ID, with body and options as they are now. The promise is rejected with a LambdanicError, or with the signal's reason. */
  async call(target: number | string, body: Uint8Array = new Uint8Array(0), options: CallOptions = {}): Promise<Reply> {
    const own = ownBytes("body", body);
    checkOptions("options", options, CALL_CHECKS);
    const { method, deadline, replyRoom, once, signal } = options;
    const chosen = given({ method, deadline, replyRoom, once, signal }) as CallOptions;
    if (typeof target !== "string") {
      checkWhole("the function", target, MAX_UINT32);
    }
    if (typeof target === "number") {
      if (this.address === undefined) {
        throw new TypeError(`call workload ${target}: workload IDs need an address: give it to the client, or call a name`);
      }
      return (await this.endpoint(this.address)).call(target, own, chosen);
    }
    if (this.gateway === undefined) {
      throw new TypeError(`call ${JSON.stringify(target)}: names need a gateway: give its address to the client, or call a workload ID`);
    }
    return this.callByName(this.gateway, target, own, chosen);
  }

  /** If a function has moved, or no answer comes, the gateway is asked where it is now. */
  private async callByName(gateway: Gateway, name: string, body: Uint8Array, options: CallOptions): Promise<Reply> {
    let known = await gateway.find(name);
    const where: Whereabouts = {
      before: undefined,
      ask: async () => {
        const was = known;
        try {
          known = await gateway.findAgain(name, was);
        } catch {
          return false; // the call goes on where it is
        }
        return known.address !== was.address || known.workload !== was.workload;
      },
    };
    for (let unknown = false; ; ) {
      try {
        return await (await this.endpoint(known.address)).call(known.workload, body, options, where);
      } catch (e) {
        where.before = undefined;
        const late = e instanceof DeadlineExceeded || (e instanceof RPCError && e.cause instanceof DeadlineExceeded);
        if (e instanceof Moved) {
          where.before = e.call;
        } else if (e instanceof UnknownWorkload && !late && !unknown) {
          unknown = true;
          known = await gateway.find(name, known);
        } else {
          if (late) {
            gateway.forget(name);
          }
          throw e;
        }
      }
    }
  }

  private endpoint(address: string): Promise<Endpoint> {
    if (this.closed) {
      return Promise.reject(new Closed());
    }
    let endpoint = this.endpoints.get(address);
    if (endpoint === undefined) {
      endpoint = Endpoint.open(address, this.options, this.stats, this.tagging);
      this.endpoints.set(address, endpoint);
      endpoint.catch(() => this.endpoints.delete(address));
    }
    return endpoint;
  }

  /** Ends calls in flight with Closed, and closes the sockets, which otherwise keep the process running. */
  async close(): Promise<void> {
    this.closed = true;
    for (const endpoint of await Promise.allSettled(this.endpoints.values())) {
      if (endpoint.status === "fulfilled") {
        endpoint.value.close();
      }
    }
    this.endpoints.clear();
  }
}
