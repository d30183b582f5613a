// SPDX-License-Identifier: Apache-2.0
// Calls lambdas by λ-RPC (docs/protocol.md).

export { Client, type ClientOptions } from "./client.js";
export * from "./errors.js";
export { Gateway, type Function, type GatewayOptions } from "./gateway.js";
export type { CallOptions, Options, Reply, Stats } from "./session.js";
export { Code, Status } from "./wire.js";
