//! Effects of each kind of offer on the snapshot, one file each. Offers that the table judges go through [`crate::tick::table`] first.

mod adopt;
mod anew;
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

use crate::tick::effect::Until;

/// `Ok` if an offer was taken, otherwise the reason why it was left.
pub(crate) type Taken = Result<(), Until>;
