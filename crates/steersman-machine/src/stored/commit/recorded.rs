//! The part of a rerun's ledger that describes the session that is rerun.

use serde::{Deserialize, Serialize};

/// State of an effect in the session that is rerun. **Stored**, like all of [`super`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Recorded {
    /// The effect happened.
    Done,
    /// The effect may have happened, and its outcome may still become known.
    InDoubt,
    /// The outcome of the effect will never be known.
    GivenUp,
}
