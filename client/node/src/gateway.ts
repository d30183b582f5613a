// SPDX-License-Identifier: Apache-2.0
// Where functions are: a gateway knows their workload IDs and addresses by their names.

import { request, type IncomingMessage } from "node:http";

import { checkOptions, checkText, checkTime, given } from "./arguments.js";
import { splitAddress } from "./endpoint.js";
import { GatewayError, NoSuchFunction } from "./errors.js";

/** A gateway's answer about a function: its workload ID, its wanted revision, and where its requests go. */
export interface Function {
  name: string;
  workload: number;
  revision: number;
  address: string;
}

export interface GatewayOptions {
  /** What a gateway asks for over TCP: USER:PASSWORD. */
  credentials?: string;
  /** Where functions are looked for: the gateway's default. */
  namespace?: string;
  /** Ms: 5000. */
  timeout?: number;
}

/** unix:PATH, HOST:PORT, [IPv6]:PORT, or the URL that `lambdanic up` prints. */
export function checkGateway(name: string, value: unknown): void {
  checkText(name, value);
  const gateway = ofURL(value as string);
  if (gateway.includes("://") && !gateway.startsWith("unix:")) {
    throw new TypeError(`${name} is ${gateway}, and a gateway speaks HTTP: give http://HOST:PORT`);
  }
  if (gateway === "unix:") {
    throw new TypeError(`${name} has no path: give unix:PATH, HOST:PORT or [IPv6]:PORT`);
  }
  if (!gateway.startsWith("unix:")) {
    splitAddress(gateway, 8080);
  }
}

/** The address in a gateway's URL, whose path does not matter. Other text is left as it is. */
function ofURL(gateway: string): string {
  return /^http:\/\/([^/]*)/i.exec(gateway)?.[1] ?? gateway;
}

function checkName(name: unknown): void {
  checkText("the function", name);
  if (name === "") {
    throw new TypeError("the function's name is empty: give a name or a workload ID");
  }
}

/** A gateway and its answers. */
export class Gateway {
  private readonly known = new Map<string, Promise<Function>>();
  private readonly asking = new Map<string, Promise<Function>>(); // for calls under way
  private readonly options: Required<GatewayOptions>;

  private readonly gateway: string;

  /** gateway is unix:PATH, HOST:PORT, [IPv6]:PORT, or the URL that `lambdanic up` prints. */
  constructor(gateway: string, options: GatewayOptions = {}) {
    checkGateway("gateway", gateway);
    this.gateway = ofURL(gateway);
    checkOptions("options", options, { credentials: checkText, namespace: checkText, timeout: checkTime });
    this.options = { credentials: "", namespace: "", timeout: 5000, ...given(options) };
  }

  /** The function, from memory where it was asked for before. stale is an answer that was wrong: then the gateway is asked again. */
  async find(name: string, stale?: Function): Promise<Function> {
    checkName(name);
    const asked = this.known.get(name) ?? this.ask(name);
    const known = await asked;
    if (known !== stale) {
      return known;
    }
    return this.known.get(name) === asked ? this.ask(name) : this.find(name, stale); // another call may have asked meanwhile
  }

  private ask(name: string): Promise<Function> {
    const asked = this.lookUp(name);
    this.known.set(name, asked);
    asked.catch(() => {
      if (this.known.get(name) === asked) {
        this.known.delete(name);
      }
    });
    return asked;
  }

  /**
   * Asks whether the function still is where calls under way get no answer, once for all that ask meanwhile. The known answer stays in use
   * for others until the gateway says something else.
   */
  async findAgain(name: string, stale: Function): Promise<Function> {
    const known = await this.known.get(name);
    if (known !== undefined && known !== stale) {
      return known;
    }
    let asked = this.asking.get(name);
    if (asked === undefined) {
      asked = this.lookUp(name)
        .then((found) => {
          this.known.set(name, Promise.resolve(found));
          return found;
        })
        .finally(() => this.asking.delete(name));
      this.asking.set(name, asked);
    }
    return asked;
  }

  /** Has the function asked for again when it is next wanted. */
  forget(name: string): void {
    this.known.delete(name);
  }

  /** Asks the gateway. */
  async lookUp(name: string): Promise<Function> {
    checkName(name);
    let answer;
    try {
      answer = await this.get(name);
    } catch (e) {
      throw new GatewayError(`ask ${this.gateway} for ${JSON.stringify(name)}: ${String(e)}: check its address`, { cause: e });
    }
    if (answer.status === 404) {
      throw new NoSuchFunction(`${this.gateway} knows no function ${JSON.stringify(name)}: deploy it first`);
    }
    if (answer.status !== 200) {
      const refused = `HTTP status ${answer.status}: check the credentials`;
      throw new GatewayError(`${this.gateway} refuses to say where ${JSON.stringify(name)} is: ${refused}`);
    }
    return this.read(name, answer.text);
  }

  private async get(name: string): Promise<{ status: number | undefined; text: string }> {
    const { credentials, namespace, timeout } = this.options;
    const query = namespace ? `?namespace=${encodeURIComponent(namespace)}` : "";
    const to = this.gateway.startsWith("unix:") ? { socketPath: this.gateway.slice("unix:".length) } : splitAddress(this.gateway, 8080);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const path = `/system/function/${encodeURIComponent(name)}${query}`;
      const signal = AbortSignal.timeout(timeout);
      request({ ...to, path, agent: false, signal, auth: credentials || null }, resolve).on("error", reject).end();
    });
    const chunks: Buffer[] = [];
    for await (const chunk of response) {
      chunks.push(chunk as Buffer);
    }
    return { status: response.statusCode, text: Buffer.concat(chunks).toString() };
  }

  private read(name: string, text: string): Function {
    let answer;
    try {
      answer = JSON.parse(text) as { workload?: unknown; revision?: unknown; endpoint?: unknown } | null;
    } catch {
      answer = null;
    }
    const { workload, revision, endpoint } = answer ?? {};
    if (!isUint32(workload) || !isUint32(revision) || typeof endpoint !== "string") {
      throw new GatewayError(`${this.gateway} is no gateway: its answer lacks what a function has`);
    }
    return { name, workload, revision, address: endpoint };
  }
}

function isUint32(v: unknown): v is number {
  return typeof v === "number" && Number.isInteger(v) && v >= 0 && v <= 0xffffffff;
}
