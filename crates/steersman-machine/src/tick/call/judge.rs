//! The second pass: conditions that must hold before a call runs. Each refusal is a result that the model sees.

use crate::network::{Approve, Offer, Requires, ToolDef, ToolUse};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::bounds::WAIT;
use crate::stored::codes::Code;
use crate::stored::engine::Caller;
use crate::stored::ids::Id;
use crate::stored::interaction::{Class, Target};
use crate::stored::outcome::Mapped;
use crate::tick::effect::Work;
use crate::tick::{Tick, limits};
use crate::values::expression::Expr;
use crate::values::types::{Parameters, TypeKind, arguments_misfit};
use crate::view::mapping::{self, Fault, Raw};
use crate::view::{Cx, View};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

use super::{message_parameter, refuse, shown};

impl Tick<'_> {
    /// Returns the refusal of an open call as its result. `None` means that the call may run.
    pub(crate) fn judge(&self, owner: Id, call: Id) -> Option<Mapped> {
        let open = self.snapshot.call(owner, call)?;
        if open.call.target == Target::Wait
            && let Work::Event { any } = crate::tick::wait::work(&self.cx(), &self.snapshot, open)
            && any.iter().map(|event| event.key.len()).sum::<usize>() > WAIT
        {
            let most = WAIT >> 10;
            let text = format!("misfit: what it waits for takes over {most} KiB");
            return Some(refuse(Code::Misfit, text));
        }
        if let Some(unfixed) = self.unfixed(open) {
            return Some(unfixed);
        }
        let tool = self.network.tools.get(&open.call.name)?;
        let used = use_of(&self.cx(), &self.snapshot, open);
        let no_conditions = tool.requires.is_empty()
            && tool.approve.is_empty()
            && used.is_none_or(|u| u.requires.is_empty() && u.approve.is_empty());
        if no_conditions {
            return None;
        }
        let cx = self.cx();
        let args = mapping::arguments(&cx, &self.snapshot, open);
        let why = refusal(&cx, &self.snapshot, open, tool, args)
            .or_else(|| unsettled(&cx, &self.snapshot, open, tool))?;
        let fault = Raw::NotPerformed(Fault::new(Code::Refused, why));
        Some(mapping::map(&cx, &self.snapshot, owner, call, &fault))
    }

    /// Returns the end of a call whose fixed arguments cannot be evaluated or do not fit: no call runs without an argument that the
    /// definition fixes.
    pub(crate) fn unfixed(&self, open: &OpenCall) -> Option<Mapped> {
        if open.edited.is_some() {
            return None;
        }
        let cx = self.cx();
        let used = use_of(&cx, &self.snapshot, open)?;
        let fault = Raw::NotPerformed(self.fixed_fault(open.owner, used)?);
        let (owner, call) = (open.owner, open.call.id);
        Some(mapping::map(&cx, &self.snapshot, owner, call, &fault))
    }

    /// Returns the fault of the fixed arguments of a use, if they cannot be evaluated or do not fit their parameters.
    pub(super) fn fixed_fault(&self, owner: Id, used: &ToolUse) -> Option<Fault> {
        if used.args.is_empty() {
            return None;
        }
        let mut values = match mapping::fixed(&self.cx(), &self.snapshot, owner, &used.seen) {
            Ok(values) => values,
            Err(fault) => return Some(fault),
        };
        let parameters = self.parameters_of(owner, used);
        let is_fixed = |name: &str| used.args.iter().any(|(fixed, _)| **fixed == *name);
        // A sealed secret is no text, and fits.
        let checked = shown(&parameters, |name, ty| {
            is_fixed(name) && ty.kind != TypeKind::Secret
        });
        let Parameters::Fields(fields) = &*checked else {
            return None;
        };
        values.retain(|name, _| fields.iter().any(|(field, _)| **field == **name));
        let misfit = arguments_misfit(&checked, &values)?.under("args");
        let why = format!("{misfit}; the definition fixes it for `{}`", used.seen);
        Some(Fault::new(Code::Misfit, why))
    }

    /// Returns the parameters of what a use offers.
    pub(super) fn parameters_of(&self, owner: Id, used: &ToolUse) -> Cow<'_, Parameters> {
        match &used.of {
            Offer::Tool(name) => self.def(owner).parameters_of(self.network.tool(name)),
            Offer::Agent(name) => match self.network.agents.get(name) {
                Some(def) => Cow::Borrowed(&def.parameters),
                None => Cow::Owned(message_parameter()),
            },
        }
    }

    /// Returns the refusal if an agent may not call one more agent, because depth or number is at its limit.
    pub(crate) fn may_start(&self, owner: Id) -> Option<Mapped> {
        let deepest = limits::deepest(&self.cx(), &self.snapshot, owner);
        if self.snapshot.depth(owner) >= deepest {
            return Some(refuse(
                Code::Limit,
                format!("limit: agents may stand {deepest} deep at most"),
            ));
        }
        let reached = limits::no_more_agents(&self.cx(), &self.snapshot, owner)?;
        let text = format!("limit: at most {} calls of agents", reached.max());
        Some(refuse(Code::Limit, text))
    }
}

/// Returns the reason why a call may not run with these arguments: a `requires` that does not hold, or an expression that fails.
pub(crate) fn refusal(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    tool: &ToolDef,
    args: Map<String, Json>,
) -> Option<String> {
    let view = View::new(cx, snapshot, Some(open.owner)).with("args", Json::Object(args));
    let used = use_of(cx, snapshot, open);
    let own: &[Requires] = used.map_or(&[], |u| &u.requires);
    for requires in tool.requires.iter().chain(own) {
        match view.holds(&requires.that) {
            Ok(true) => {}
            Ok(false) => return Some(unmet(requires, &view)),
            Err(e) => return Some(format!("`{}` cannot be judged: {e}", requires.that.source)),
        }
    }
    // If it cannot be decided whether a person must approve, the call does not run.
    let own: &[Approve] = used.map_or(&[], |u| &u.approve);
    tool.approve.iter().chain(own).find_map(|approve| {
        let failed = view.holds(&approve.when).err()?;
        Some(format!(
            "`{}` cannot be judged: {failed}",
            approve.when.source
        ))
    })
}

/// Returns the reason why a call that changes the world cannot be judged yet: its `requires` or `approve` reads state that an
/// earlier open call of the same answer may write, or the count of the calls to which that call belongs. Calls of one answer run
/// together, and their writes take effect together. So each of several payments would otherwise be judged as if it were the only
/// one.
fn unsettled(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall, tool: &ToolDef) -> Option<String> {
    if !matches!(tool.effect, Class::Idempotent | Class::Unsafe) {
        return None;
    }
    let used = use_of(cx, snapshot, open);
    let requires = used.map_or(&[][..], |u| &u.requires);
    let approve = used.map_or(&[][..], |u| &u.approve);
    let requires = tool.requires.iter().chain(requires).map(|r| &r.that);
    let approve = tool.approve.iter().chain(approve).map(|a| &a.when);
    let read: Vec<&Expr> = requires.chain(approve).collect();
    let earlier = snapshot.exchange(open.owner);
    let earlier = earlier.filter(|other| other.call.id < open.call.id && other.closed.is_none());
    let reads = |variable: &str, name: &str| read.iter().any(|e| e.node().may_read(variable, name));
    let depends = |on: &str, name: &str| {
        format!(
            "it depends on `{on}`, which the call of `{name}` before it in the same answer may change; call it again when that has \
             ended"
        )
    };
    for other in earlier {
        let name = &other.call.name;
        if reads("calls", name) {
            return Some(depends(&format!("calls.{name}"), name));
        }
        let Some(writer) = cx.network.tools.get(name) else {
            continue;
        };
        let on_error = writer.on_error.values().flat_map(|entry| &entry.set);
        let mut written = writer.set.iter().chain(on_error).map(|(name, _)| name);
        if let Some(entry) = written.find(|entry| reads("state", entry)) {
            return Some(depends(&format!("state.{entry}"), name));
        }
    }
    None
}

/// Returns the reason for a condition that does not hold: the definition's text, or its expression.
fn unmet(requires: &Requires, view: &View<'_>) -> String {
    let source = || format!("`{}` does not hold", requires.that.source);
    match &requires.otherwise {
        None => source(),
        Some(template) => template.render(view).unwrap_or_else(|_| source()),
    }
}

/// Returns the use under which the model was offered the called tool. `None` if the engine made the call.
pub(crate) fn use_of<'n>(cx: &Cx<'n>, snapshot: &Snapshot, open: &OpenCall) -> Option<&'n ToolUse> {
    if open.call.by != Caller::Model {
        return None;
    }
    let model = cx.network.in_force(snapshot.agent(open.owner))?;
    let seen = &open.call.called();
    model.tools.iter().find(|u| u.seen == *seen)
}
