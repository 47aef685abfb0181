//! Tests of the machine from outside.

mod apart;
mod bounds;
mod branches;
mod calls;
mod cases;
mod codec;
mod codes;
mod context;
mod expression;
mod history;
mod judges;
mod lengthy;
mod limits;
mod manifest;
mod mapping;
mod memory;
mod models;
mod nets;
mod parts;
mod policies;
mod random;
mod reward;
mod table;
mod traces;
mod types;
mod view;
