export * from "./client.js";
export { WellwornError, type CallOptions, type ClientOptions, type Problem, type Scope } from "./wire.js";
