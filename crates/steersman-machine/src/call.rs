//! Calls, in three strict passes: all are pushed, all are judged, then they begin, the last one when the others are
//! closed. And their ends.

use crate::effect::{Mapped, Wish, Work};
use crate::ids::{Body, Id, Name};
use crate::interaction::{Call, CallResult, Class, How, Interaction, Target};
use crate::snapshot::{Effect, Snapshot};
use crate::tick::{Cx, Tick};

/// What an effect that is out asks for, rebuilt from the snapshot.
pub(crate) fn wish(_cx: &Cx<'_>, snapshot: &Snapshot, id: Id, effect: &Effect) -> Wish {
    let work = match effect.call.and_then(|c| snapshot.call(effect.agent, c)) {
        None => Work::Model,
        Some(_) => Work::Timer,
    };
    Wish {
        id,
        agent: effect.agent,
        call: effect.call,
        work,
        due: effect.due,
    }
}

impl Tick<'_> {
    /// Closes a call with what became of it: its result, its writes, what follows it. Wakes its owner.
    pub(crate) fn close_call(&mut self, owner: Id, call: Id, mapped: Mapped) {
        let body = mapped.shown.map(|text| self.body(text));
        self.push_result(owner, call, mapped.how, mapped.code.as_deref(), body);
    }

    /// Pushes a result without writes.
    pub(crate) fn push_result(
        &mut self,
        owner: Id,
        call: Id,
        how: How,
        code: Option<&str>,
        body: Option<Body>,
    ) {
        if let Some(effect) = self.snapshot.call(owner, call).and_then(|c| c.effect) {
            self.stop(effect);
        }
        self.push(
            owner,
            Interaction::Result(CallResult {
                call,
                how,
                body,
                code: code.map(Name::from),
                writes: Vec::new(),
                artifacts: Vec::new(),
                by: None,
            }),
        );
        self.wake(owner);
    }

    /// Opens a call that the engine makes: a `then:`, a join, a router's plain tool.
    pub(crate) fn open_call(
        &mut self,
        owner: Id,
        tool: &Name,
        args: &serde_json::Value,
        chain: Option<Id>,
    ) -> Id {
        let id = self.id();
        let args = self.body(args.to_string());
        self.push(
            owner,
            Interaction::Call(Call {
                id,
                name: tool.clone(),
                seen: None,
                target: Target::Tool(Class::Pure),
                label: None,
                args,
                chain,
            }),
        );
        self.wake(owner);
        id
    }
}
