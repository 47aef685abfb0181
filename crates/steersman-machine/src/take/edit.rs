//! A person changed arguments or state, or time passed.

use crate::call::{parse, refusal, refuse};
use crate::commit::{Admission, Admitted, Branched, Wished};
use crate::effect::{NewWrite, Until};
use crate::fold::MISFIT;
use crate::ids::{Digest, Id, Name};
use crate::interaction::{Reduce, Write};
use crate::limits::{OnLimit, Reached};
use crate::mapping::{self, Fault, Raw};
use crate::table::{self, Rule};
use crate::take::Taken;
use crate::take::cancel::Cut;
use crate::tick::Tick;
use crate::types::arguments_misfit;
use crate::view::{complete, declares};

impl Tick<'_> {
    /// A person approved a call with other arguments: it is judged again with these and wished as another effect.
    pub(crate) fn take_edited(
        &mut self,
        effect: Id,
        args: &str,
        by: &Name,
        approver: &Name,
    ) -> Taken {
        let Some(open) = self.snapshot.call_of(effect).cloned() else {
            return Err(Until::Stale);
        };
        let rule = table::rule(self.agent(open.owner).phase, table::Event::CallChanged);
        if rule != Rule::Take || !self.snapshot.in_scope(open.owner) {
            return Err(Until::Stale);
        }
        let Some(tool) = self.network.tools.get(&open.call.name) else {
            return Err(Until::Refused("only the arguments of a tool can be edited"));
        };
        let Ok(given) = parse(args) else {
            return Err(Until::Refused("the arguments are not a JSON object"));
        };
        self.admit(Admission {
            kind: Admitted::Edited,
            id: Some(effect),
            message: None,
            digest: Digest::of(args.as_bytes()),
            body: None,
        });
        let (owner, call) = (open.owner, open.call.id);
        if let Some(misfit) = arguments_misfit(&crate::call::given(tool), &given) {
            let text = format!("misfit: {}", misfit.under("args"));
            self.close_call(owner, call, refuse(MISFIT, text));
            return Ok(());
        }
        let full = match &tool.parameters {
            crate::network::Parameters::Fields(fields) => complete(given.clone(), fields),
            crate::network::Parameters::Schema(_) => given.clone(),
        };
        if let Some(why) = refusal(&self.cx(), &self.snapshot, &open, tool, full) {
            let raw = Raw::NotPerformed(Fault::new("refused", why));
            let mut mapped = mapping::map(&self.cx(), &self.snapshot, owner, call, &raw);
            mapped.by = Some(by.to_string());
            self.close_call(owner, call, mapped);
            return Ok(());
        }
        self.stop(effect);
        self.branch(owner, call, Branched::Edited(approver.clone()));
        let id = self.id();
        let args = self.body(args);
        self.wish(Wished {
            id,
            agent: owner,
            call: Some(call),
            args: Some(args),
            due: None,
        });
        Ok(())
    }

    /// A person edits state.
    pub(crate) fn take_edit(&mut self, writes: &[NewWrite], by: &Name) -> Taken {
        let Some(writer) = self.snapshot.top() else {
            return Err(Until::Refused("the session has not begun"));
        };
        if writes.is_empty() {
            return Err(Until::Refused("there is nothing to edit"));
        }
        let Ok(writes) = self.writes(writer, writes) else {
            return Err(Until::Refused("a value does not fit the declared state"));
        };
        let names: Vec<&str> = writes.iter().map(|w| &*w.name).collect();
        let names = names.join(",");
        self.admit(Admission {
            kind: Admitted::Edited,
            id: None,
            message: Some(by.clone()),
            digest: Digest::of(names.as_bytes()),
            body: None,
        });
        for write in writes {
            self.edit(write);
        }
        Ok(())
    }

    /// Entries whose time is over have their default again, or are unset. Whether there was one.
    pub(crate) fn expire(&mut self) -> bool {
        let now = self.now;
        let due: Vec<(Id, Name)> = self
            .snapshot
            .expiring
            .iter()
            .take_while(|(at, ..)| *at <= now)
            .map(|(_, scope, name)| (*scope, name.clone()))
            .collect();
        for (scope, name) in &due {
            let cx = self.cx();
            let declared = declares(&cx, &self.snapshot, *scope, name);
            let default = declared.and_then(|(_, ty)| ty.default.clone());
            let value = default.map(|json| self.body(json.to_string()));
            self.edit(Write {
                scope: *scope,
                name: name.clone(),
                value,
                reduce: Reduce::Last,
                expires: None,
            });
        }
        !due.is_empty()
    }

    /// A limit of time ends what is open, but where a person is asked for more: then it goes on until they answer.
    fn out_of_time(&mut self, agent: Id, reached: &Reached) {
        let cut = Cut::default();
        if reached.then != OnLimit::Ask {
            self.cut_calls(agent, &cut);
            self.cut_thought(agent, &cut);
        }
        if self.limit(agent, reached) {
            // The last call, whatever the time.
            let place = self.place(agent);
            self.thinkers.insert(place);
        }
    }

    /// Time passed: a limit of time may be reached.
    pub(crate) fn take_clock(&mut self, expired: bool) -> Taken {
        let late = crate::wait::limit_of_time(&self.cx(), &self.snapshot);
        let late = late.filter(|(at, ..)| *at <= self.now);
        if !expired && late.is_none() {
            return Err(Until::Stale);
        }
        self.admit_as(Admitted::Clock, None, b"");
        if let Some((_, agent, limit)) = late {
            self.out_of_time(agent, &Reached::new("wall_time", &limit));
        }
        Ok(())
    }
}
