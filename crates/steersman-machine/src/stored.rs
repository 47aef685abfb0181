//! Stored forms: ids, interactions, commits, ledger entries, their bytes and their bounds. Nothing here acts.

pub mod bounds;
pub mod codec;
pub mod commit;
pub mod ids;
pub mod interaction;
