export type * from "./api.js";
export { Client, Session } from "./client.js";
export type { ClientOptions, Deciding } from "./client.js";
export type { Call, Frame, Options } from "./call.js";
export { InvalidAnswer, ProblemError, SteersmanError, StreamEnded, Unreachable } from "./errors.js";
export { Pieces } from "./follow.js";
export type { Event, Follow } from "./follow.js";
