//! Joins of branches by a person.

use crate::network::Then;
use crate::network::join::JoinOn;
use crate::stored::commit::{Admitted, CallChanged};
use crate::stored::engine::Caller;
use crate::stored::ids::Id;
use crate::stored::interaction::{Call, Interaction, Target};
use crate::tick::Tick;
use crate::tick::branch::JOIN;
use crate::tick::effect::Until;
use crate::tick::table::{Event, Rule, rule};
use crate::tick::take::Taken;
use crate::values::types::argument_in_clear;
use serde_json::{Value as Json, json};

impl Tick<'_> {
    /// Takes a person's join of branches: the root opens a call to them. The root must rest for this, and is at work until the
    /// call closes.
    pub(crate) fn take_join(&mut self, branches: &[Id], on: &JoinOn, then: Option<&Then>) -> Taken {
        let root = self
            .snapshot
            .root
            .ok_or(Until::refused("the session has not begun"))?;
        if branches.is_empty() {
            return Err(Until::refused("no branch is named"));
        }
        if on.fits(branches.len()).is_err() {
            return Err(Until::refused(
                "more branches are to end than are named, and the join would never be over",
            ));
        }
        if let Some(then) = then {
            self.may_follow(then)?;
        }
        if !self.snapshot.in_scope(root) || rule(self.agent(root).phase, Event::Join) != Rule::Take
        {
            return Err(Until::refused("the session is at work; join when it rests"));
        }
        let named: Vec<String> = branches.iter().map(Id::to_string).collect();
        let mut args = json!({ "branches": named });
        if *on != JoinOn::All {
            args["on"] = on.to_string().into();
        }
        if let Some(then) = then {
            args["then"] = json!(&*then.tool);
            if let Some(given) = &then.args {
                let given = given
                    .iter()
                    .map(|(name, data)| (name.to_string(), data.source()));
                args["args"] = Json::Object(given.collect());
            }
        }
        self.admit_as(Admitted::Join, None);
        let id = self.id();
        let args = self.body(args.to_string());
        let number = self.number(root, None);
        self.push(
            root,
            Interaction::Call(Call {
                id,
                name: JOIN.into(),
                by: Caller::Person,
                seen: None,
                target: Target::Branches(branches.to_vec()),
                label: None,
                args,
                number,
            }),
        );
        self.branch(root, id, CallChanged::Began(branches.to_vec()));
        Ok(())
    }

    /// Checks that a person may have this tool called after a join. Secrets are given as answers, which are sealed, and not as arguments.
    fn may_follow(&self, then: &Then) -> Taken {
        let Some(tool) = self.network.tools.get(&then.tool) else {
            return Err(Until::refused("there is no tool of that name"));
        };
        let given = then.args.iter().flatten();
        let given = given.map(|(name, data)| (name.to_string(), data.source()));
        match argument_in_clear(&tool.parameters, &given.collect()) {
            Some(misfit) => Err(Until::Refused(misfit.to_string().into())),
            None => Ok(()),
        }
    }
}
