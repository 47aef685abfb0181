//! Services that examples call: small, on loopback, a process of their own.

pub(crate) mod research;
pub(crate) mod support;
