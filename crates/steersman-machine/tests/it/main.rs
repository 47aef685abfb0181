//! Tests of the machine from outside.

mod definition;
mod expression;
