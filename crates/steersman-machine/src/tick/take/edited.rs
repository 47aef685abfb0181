//! Approval of a call with other arguments.

use crate::snapshot::OpenCall;
use crate::stored::by::By;
use crate::stored::codes::Code;
use crate::stored::commit::{Admission, Admitted, CallChanged, Want, Wished};
use crate::stored::ids::{Id, Name};
use crate::tick::Tick;
use crate::tick::call::{refusal, refuse};
use crate::tick::effect::Until;
use crate::tick::table::{self, Rule};
use crate::tick::take::Taken;
use crate::values::json::arguments;
use crate::values::types::arguments_misfit;
use crate::view::complete;
use crate::view::mapping::{self, Fault, Raw};
use std::sync::Arc;

impl Tick<'_> {
    /// Takes a person's approval of a call with other arguments. The call is judged again with these and wished as another
    /// effect.
    pub(crate) fn take_edited(
        &mut self,
        effect: Id,
        args: &str,
        by: &By,
        approver: &Name,
    ) -> Taken {
        let open = self.held_call(effect, table::Event::CallChanged)?;
        let Some(tool) = self.network.tools.get(&open.call.name) else {
            return Err(Until::refused("only the arguments of a tool can be edited"));
        };
        let Ok(given) = arguments(args) else {
            return Err(Until::refused("the arguments are not a JSON object"));
        };
        self.admit(Admission {
            kind: Admitted::Edited,
            id: Some(effect),
            message: None,
            by: Some(by.clone()),
            body: None,
        });
        let (owner, call) = (open.owner, open.call.id);
        if let Some(misfit) = arguments_misfit(&crate::tick::call::given(tool), &given) {
            let text = format!("misfit: {}", misfit.under("args"));
            self.close_call(owner, call, refuse(Code::Misfit, text));
            return Ok(());
        }
        let full = match &tool.parameters {
            crate::values::types::Parameters::Fields(fields) => complete(given.clone(), fields),
            crate::values::types::Parameters::Schema(_) => given.clone(),
        };
        if let Some(why) = refusal(&self.cx(), &self.snapshot, &open, tool, full) {
            self.refuse_held(&open, why, Some(by));
            return Ok(());
        }
        self.stop(effect);
        let edited = CallChanged::Edited {
            by: by.clone(),
            approver: approver.clone(),
        };
        self.branch(owner, call, edited);
        let id = self.id();
        let args = self.body(args);
        self.wish(Wished {
            id,
            agent: owner,
            what: Want::Call(call),
            args: Some(args),
            due: None,
        });
        Ok(())
    }

    /// Returns the open call of an effect that a person was asked about.
    pub(super) fn held_call(
        &self,
        effect: Id,
        event: table::Event,
    ) -> Result<Arc<OpenCall>, Until> {
        let open = self.snapshot.call_of(effect).ok_or(Until::Stale)?;
        let rule = table::rule(self.agent(open.owner).phase, event);
        if rule != Rule::Take || !self.snapshot.in_scope(open.owner) {
            return Err(Until::Stale);
        }
        Ok(open.clone())
    }

    /// Closes a call that may not run any more.
    pub(super) fn refuse_held(&mut self, open: &OpenCall, why: String, by: Option<&By>) {
        let (owner, call) = (open.owner, open.call.id);
        let raw = Raw::NotPerformed(Fault::new(Code::Refused, why));
        let mut mapped = mapping::map(&self.cx(), &self.snapshot, owner, call, &raw);
        mapped.by = by.cloned().map(Into::into);
        self.close_call(owner, call, mapped);
    }
}
