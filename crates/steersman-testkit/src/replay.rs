//! Runs a test twice and compares the two logs, byte for byte.

use super::case::{Ran, run};
use super::world::{Fault, fault};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_definition::test::Test;
use steersman_machine::network::Network;
use steersman_machine::stored::codec::encode;

/// Runs a test twice and returns the second run. An error means that the two logs differ.
pub fn twice(network: &Arc<Network>, test: &Test) -> Result<Ran, Fault> {
    let first = run(network.clone(), test)?;
    let second = run(network.clone(), test)?;
    let (a, b) = (bytes(&first), bytes(&second));
    for (k, (a, b)) in a.iter().zip(&b).enumerate() {
        if a != b {
            return fault(format!("line {} differs in the second run", k + 1));
        }
    }
    if a.len() != b.len() {
        return fault(format!("{} lines, in the second run {}", a.len(), b.len()));
    }
    Ok(second)
}

/// Returns the lines as they would be stored, each chained to the line before it on its branch.
pub fn bytes(ran: &Ran) -> Vec<Vec<u8>> {
    let mut hashes = BTreeMap::new();
    let mut out = Vec::new();
    for line in ran.world.lines() {
        let before = hashes.get(&line.prev).copied().unwrap_or([0; 32]);
        let (bytes, hash) = encode(line, &before, &[7; 16]);
        hashes.insert(line.n, hash);
        out.push(bytes);
    }
    out
}
