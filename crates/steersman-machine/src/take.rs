//! What each kind of offer does to the snapshot, one file each. [`crate::table`] answers first, for those that it judges.

mod adopt;
pub(crate) mod cancel;
mod clock;
mod edit;
mod edited;
mod ended;
mod interrupt;
mod join;
mod message;
mod opened;
mod outcome;
mod start;

pub use message::floor;

use crate::effect::Until;

/// An offer was taken, or left and why.
pub(crate) type Taken = Result<(), Until>;
