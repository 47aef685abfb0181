//! Fuzz targets: each takes any bytes, and panics if a property of the code that reads them does not hold.
//!
//! ```text
//! corpus/TARGET/*  every input that ever broke the target       --+
//! seeds            cases, examples, recorded wires, kept bytes  --+--> check, and mutations by a fixed seed   (cargo test)
//!                                                                 +--> libFuzzer, guided by coverage          (cargo xtask long fuzz)
//! ```
//!
//! The properties are in the docs of the modules. A new target is a module with `TARGET`, and a row in [`TARGETS`].

mod arguments;
mod definitions;
mod expressions;
mod fields;
mod lines;
mod mutate;
mod orders;
mod requests;
mod seeds;
mod streams;

pub use mutate::Mutations;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A fuzz target.
#[derive(Copy, Clone)]
pub struct Target {
    /// Name of the target, and of its folder under `corpus/`.
    pub name: &'static str,
    /// Panics if a property does not hold for these bytes.
    pub check: fn(&[u8]),
    /// Returns inputs to start from, made from files of this repository.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Pieces that mutations insert.
    pub words: &'static [&'static str],
    /// Number of mutations that CI checks: some seconds of a debug build.
    pub mutations: u32,
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    definitions::TARGET,
    lines::TARGET,
    streams::TARGET,
    arguments::TARGET,
    expressions::TARGET,
    orders::TARGET,
    fields::TARGET,
];

/// Time limit for one input in a debug build on a busy machine. Nearly all take less than a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(20);

impl Target {
    /// Returns the target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// Returns the folder of the inputs that broke the target.
    pub fn corpus(self) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        folder.join(self.name)
    }

    /// Checks an input, and that it does not take longer than any input may.
    pub fn run(self, input: &[u8]) {
        let begun = Instant::now();
        (self.check)(input);
        let took = begun.elapsed();
        assert!(took < PATIENCE, "it took {took:?}");
    }
}
