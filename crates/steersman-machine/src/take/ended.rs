//! Branches end for whoever waits for them, and are joined by a person.

use crate::branch::JOIN;
use crate::commit::{Admitted, Branched};
use crate::effect::{BranchEnd, Until};
use crate::ids::Id;
use crate::interaction::{Call, Interaction, Target};
use crate::network::Then;
use crate::table::{Event, Rule, rule};
use crate::take::Taken;
use crate::tick::Tick;
use crate::wait::awaits_branches;
use serde_json::{Value as Json, json};

impl Tick<'_> {
    /// All branches that count have ended: the call's one result holds theirs, or its chooser begins.
    pub(crate) fn take_ended(&mut self, call: (Id, Id), ends: &[BranchEnd]) -> Taken {
        let open = self.snapshot.call(call.0, call.1).cloned();
        let open = open.filter(|c| c.closed.is_none()).ok_or(Until::Stale)?;
        if !self.snapshot.in_scope(open.owner) || open.ends.is_some() {
            return Err(Until::Stale);
        }
        if !matches!(open.call.target, Target::Branches(_) | Target::Wait) {
            return Err(Until::Stale);
        }
        let waiting = match open.call.target {
            Target::Wait => {
                let part = awaits_branches(&self.cx(), &self.snapshot, &open);
                Some(part.ok_or(Until::Stale)?.0)
            }
            _ => None,
        };
        if ends.is_empty() {
            self.admit_as(Admitted::Ended, Some(open.call.id), b"");
        }
        for end in ends {
            let text = format!("{}@{}", end.branch, end.at);
            self.admit_as(Admitted::Ended, Some(end.branch), text.as_bytes());
        }
        match &open.call.target {
            Target::Branches(_) if *open.call.name == *JOIN => {
                self.joined(&open, &crate::branch::results(ends));
            }
            Target::Branches(_) => self.ends(&open, ends),
            _ => {
                let gave = (!ends.is_empty()).then(|| crate::branch::results(ends));
                self.part_met(&open, waiting, gave.as_ref());
            }
        }
        Ok(())
    }

    /// A person joins branches: the root opens a call to them. It rests meanwhile for nobody.
    pub(crate) fn take_join(&mut self, branches: &[Id], then: Option<&Then>) -> Taken {
        let root = self
            .snapshot
            .root
            .ok_or(Until::Refused("the session has not begun"))?;
        if branches.is_empty() {
            return Err(Until::Refused("no branch is named"));
        }
        if then.is_some_and(|then| !self.network.tools.contains_key(&then.tool)) {
            return Err(Until::Refused("there is no tool of that name"));
        }
        if !self.snapshot.in_scope(root) || rule(self.agent(root).phase, Event::Join) != Rule::Take
        {
            return Err(Until::Refused("the session is at work; join when it rests"));
        }
        let named: Vec<String> = branches.iter().map(Id::to_string).collect();
        let mut args = json!({ "branches": named });
        if let Some(then) = then {
            args["then"] = json!(&*then.tool);
            if let Some(given) = &then.args {
                let given = given
                    .iter()
                    .map(|(name, data)| (name.to_string(), data.source()));
                args["args"] = Json::Object(given.collect());
            }
        }
        self.admit_as(Admitted::Join, None, args.to_string().as_bytes());
        let id = self.id();
        let args = self.body(args.to_string());
        self.push(
            root,
            Interaction::Call(Call {
                id,
                name: JOIN.into(),
                seen: None,
                target: Target::Branches(branches.to_vec()),
                label: None,
                args,
                chain: None,
            }),
        );
        self.branch(root, id, Branched::Began(branches.to_vec()));
        Ok(())
    }
}
