//! Tests of a definition, as data: script, steps, expectations.

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {}
