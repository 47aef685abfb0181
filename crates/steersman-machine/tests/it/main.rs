//! Tests of the machine from outside.

mod codec;
mod context;
mod definition;
mod expression;
mod log;
mod mapping;
mod nets;
mod table;
mod view;
