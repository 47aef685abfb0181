//! What the ledger of a rerun knows of the session that it reruns.

use serde::{Deserialize, Serialize};

/// How an effect stands in the session that is rerun. **Stored**, like all of [`super`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Recorded {
    /// It happened.
    Done,
    /// It may have happened, and somebody still may find out.
    InDoubt,
    /// Nobody will know.
    GivenUp,
}
