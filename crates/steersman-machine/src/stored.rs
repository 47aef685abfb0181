//! The content of logs: ids, interactions, commits, ledger entries, outcomes, names that the engine writes; their bytes and bounds.
//! Nothing here acts.

pub mod bounds;
pub mod built_in;
pub mod by;
pub mod codec;
pub mod codes;
pub mod commit;
pub mod engine;
pub mod ids;
pub mod interaction;
pub mod outcome;
pub mod parts;
pub mod words;
