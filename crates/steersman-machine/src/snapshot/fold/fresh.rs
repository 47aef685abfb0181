//! The state of a call that was just opened.

use crate::snapshot::OpenCall;
use crate::stored::ids::{Digest, Id, Time};
use crate::stored::interaction::Call;

/// Returns the state of a call that was just opened. Nothing has begun, ended or been decided yet.
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
