//! Tests of definitions from outside.

mod definition;
mod imports;
mod mistakes;
mod schedules;
mod wide;
