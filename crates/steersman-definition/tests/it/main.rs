//! Tests of definitions from outside.

mod definition;
mod imports;
mod wide;
