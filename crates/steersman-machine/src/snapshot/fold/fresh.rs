//! New agents and calls, with the default of each field.

use crate::snapshot::{Agent, Counters, OpenCall, Phase, Span, Uses};
use crate::stored::commit::Kind;
use crate::stored::ids::{Digest, Id, Line, Name, Path, Time};
use crate::stored::interaction::Call;
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

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

/// Returns a new agent that has received nothing.
pub(super) fn newborn(id: Id, def: Name, kind: Kind, path: Path, now: Time) -> Agent {
    Agent {
        id,
        def,
        kind,
        parent: None,
        path,
        births: 0,
        named: None,
        phase: Phase::Resting,
        owed: None,
        serving: None,
        calls: 0,
        open: 0,
        running: 0,
        exchanges: 0,
        queue: OrdSet::new(),
        children: OrdMap::new(),
        args: None,
        message: None,
        before: OrdMap::new(),
        prepared: false,
        unanswered: Vec::new(),
        unread: Vec::new(),
        said: None,
        answer: None,
        ended: None,
        spoke: None,
        draft: None,
        sent_back: Vec::new(),
        last: Line::NONE,
        height: 0,
        mode: None,
        state: None,
        missed: None,
        routing: Arc::default(),
        counters: Counters {
            answer: Span::since(now),
            task: Span::since(now),
            session: Span::since(now),
            stood: now.0,
            ..Counters::default()
        },
        counts: OrdMap::new(),
        bare: false,
        used: Uses::default(),
        sums: OrdMap::new(),
        weight: Arc::default(),
    }
}
