//! New calls, with the default of each field.

use crate::snapshot::OpenCall;
use crate::stored::ids::{Digest, Id, Time};
use crate::stored::interaction::Call;

/// Returns a call as it is when it is opened.
pub(super) fn opened(call: Call, owner: Id, opened: Time, digest: Digest) -> OpenCall {
    OpenCall {
        call,
        owner,
        effect: None,
        edited: None,
        opened,
        due: None,
        begun: false,
        approved: false,
        approver: None,
        met: Vec::new(),
        keys: Vec::new(),
        opened_at: 0,
        chooser: None,
        ends: None,
        chosen: None,
        digest,
        mode: None,
        closed: None,
    }
}
