//! Tests of the server through HTTP on loopback, with a real client and a scripted model.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod a2a;
mod a2a_sdk;
mod acts;
mod agui;
mod agui_clients;
mod changes;
mod console;
mod filters;
mod guard;
mod held;
mod idempotent;
mod law;
mod leak;
mod looks;
mod mcp;
mod memories;
mod openai;
mod openai_clients;
mod openapi;
mod pictures;
mod reach;
mod receiver;
mod reruns;
mod responses;
mod sealed;
mod searches;
mod streams;
mod unseen;
mod webhook_clients;
mod webhooks;
mod world;
mod written;
