//! Reviewers: agents that the engine calls for judgements, and the verdicts they return.

use crate::network::texts;
use crate::questions::verdict::{Verdict, judge_verdict};
use crate::stored::codes::Code;
use crate::stored::engine::{Caller, Judged};
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{Call, How, Target};
use crate::stored::outcome::Mapped;
use crate::tick::Tick;
use crate::tick::call::{Ending, NewCall, Said};
use crate::values::types::{Parameters, TypeKind, arguments_misfit};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// Material for a reviewer.
struct Material<'a> {
    /// The text that is to be judged.
    draft: String,
    /// For a call: its tool, arguments and result.
    call: Option<(&'a str, &'a str, Option<&'a str>)>,
    /// Prompt of the definition.
    prompt: Option<String>,
}

impl Tick<'_> {
    /// Calls a reviewer with a draft.
    pub(super) fn ask_reviewer(
        &mut self,
        owner: Id,
        by: &Name,
        about: &Judged,
        draft: &str,
        prompt: Option<String>,
    ) {
        let material = Material {
            draft: draft.to_owned(),
            call: None,
            prompt,
        };
        self.call_reviewer(owner, by, about, &material);
    }

    /// Calls a reviewer with a call of a tool: its arguments, and its result once there is one.
    pub(super) fn ask_reviewer_of_call(
        &mut self,
        owner: Id,
        by: &Name,
        about: &Judged,
        args: &str,
        gave: Option<&str>,
        prompt: Option<String>,
    ) {
        let tool = about.tool().cloned().unwrap_or_else(|| "".into());
        let draft = match gave {
            Some(gave) => format!("{tool}({args}) gave: {gave}"),
            None => format!("{tool}({args})"),
        };
        let material = Material {
            draft,
            call: Some((&tool, args, gave)),
            prompt,
        };
        self.call_reviewer(owner, by, about, &material);
    }

    fn call_reviewer(&mut self, owner: Id, by: &Name, about: &Judged, material: &Material<'_>) {
        let parameters = &self.network.agent(by).parameters;
        let args = self.material(owner, parameters, material);
        let refused = self.may_start(owner).or_else(|| {
            let misfit = arguments_misfit(parameters, &args)?;
            let text = format!("misfit: {}", misfit.under("args"));
            Some(crate::tick::call::refuse(Code::Misfit, text))
        });
        let target = match &refused {
            Some(_) => Target::Unknown,
            // One reviewer instance judges everything of an agent, so it knows its earlier verdicts.
            None => Target::Agent(self.instance(owner, by, Some(by))),
        };
        let args = Json::Object(args);
        let call = NewCall::new(by, Caller::Judge(about.clone()), &args);
        let call = self.push_call(owner, call, target);
        if let Some(refused) = refused {
            self.close_call(owner, call, refused);
        }
    }

    /// Returns the arguments of a reviewer's call, by the names of its parameters.
    fn material(
        &self,
        owner: Id,
        parameters: &Parameters,
        material: &Material<'_>,
    ) -> Map<String, Json> {
        let task = self.agent(owner).input.message.map(|body| self.text(body));
        let task = task.map_or_else(String::new, |text| crate::context::called(&text));
        let Parameters::Fields(fields) = parameters else {
            return Map::new();
        };
        let text_of = |text: &str, kind: &TypeKind| match kind {
            TypeKind::String { .. } => Some(Json::from(text)),
            // Text that is not JSON is left out. If the parameter is required, that is a misfit.
            _ => crate::values::json::read(text).ok(),
        };
        let mut args = Map::new();
        for (name, ty) in fields {
            let value = match (&**name, material.call) {
                ("draft", _) => text_of(&material.draft, &ty.kind),
                ("task", _) => text_of(&task, &ty.kind),
                ("prompt", _) => material
                    .prompt
                    .as_deref()
                    .and_then(|p| text_of(p, &ty.kind)),
                ("tool", Some((tool, ..))) => text_of(tool, &ty.kind),
                ("args", Some((_, args, _))) => text_of(args, &ty.kind),
                ("result", Some((.., Some(gave)))) => text_of(gave, &ty.kind),
                ("message", _) => Some(Json::from(self.message(owner, &task, material))),
                _ => None,
            };
            // An optional parameter is given only if the value fits its type.
            let fits =
                |value: &Json| !ty.optional || crate::values::types::misfit(ty, value).is_none();
            if let Some(value) = value.filter(fits) {
                args.insert(name.to_string(), value);
            }
        }
        args
    }

    /// Returns all the material in one message.
    fn message(&self, owner: Id, task: &str, material: &Material<'_>) -> String {
        let values = [("task", task), ("draft", &*material.draft)];
        let sentence = match material.call {
            None => texts::REVIEW,
            Some(_) => texts::REVIEW_CALL,
        };
        let text = self.says(owner, sentence, &values);
        match &material.prompt {
            Some(prompt) => format!("{prompt}\n\n{text}"),
            None => text,
        }
    }

    /// Closes the call of a judgement with its verdict. Arguments that are to be revised do not run.
    pub(crate) fn end_review(&mut self, owner: Id, call: &Call, how: How, ending: Ending<'_>) {
        let said: Option<Arc<str>> = match &ending.said {
            Said::Nothing => None,
            Said::Text(text) => Some(Arc::from(&**text)),
            Said::Body(body) => Some(self.text(*body)),
        };
        let (how, mapped, verdict) = verdict(how, ending.code, said.as_deref());
        let shown = mapped.shown.unwrap_or_default();
        let same = match &ending.said {
            Said::Body(body) => said.filter(|said| **said == *shown).map(|_| *body),
            Said::Text(_) | Said::Nothing => None,
        };
        let about = call.judged();
        // An unsafe call runs only after an explicit acceptance; an unusable judgement does not count.
        let accepts = matches!(verdict, Some(Verdict::Accept));
        let revise = match about {
            Some(Judged::Args(..)) => {
                !accepts && !matches!(how, How::Cancelled | How::NotInThisBranch)
            }
            _ => matches!(verdict, Some(Verdict::Revise(_))),
        };
        if let Some(tool) = about.and_then(Judged::tool) {
            self.results.entry(owner).or_default().review(tool, revise);
        }
        let ending = Ending {
            code: mapped.code.as_deref(),
            said: same.map_or_else(|| Said::Text(shown.clone()), Said::Body),
            ..ending
        };
        let ending = self.fitted(owner, call.id, ending);
        self.push_end(owner, call.id, how, ending);
        if let (Some(Judged::Args(of, _)), true) = (about, revise) {
            self.send_back(owner, *of, &shown);
        }
    }
}

/// Returns the result of a judgement: how its call closes, with which code and text, and the verdict.
fn verdict(how: How, code: Option<&str>, text: Option<&str>) -> (How, Mapped, Option<Verdict>) {
    if matches!(how, How::Cancelled | How::NotInThisBranch) {
        let mapped = Mapped::plain(how, code, text.unwrap_or_default());
        return (how, mapped, None);
    }
    if !how.is_ok() {
        let code = code.unwrap_or(Code::Unusable.text());
        let why = text.unwrap_or_default();
        let text = format!("no judgement: {why}");
        return (how, Mapped::plain(how, Some(code), text.trim_end()), None);
    }
    let verdict = judge_verdict(text.unwrap_or_default());
    let (how, shown) = match &verdict {
        Verdict::Accept => (how, crate::stored::codes::ACCEPT.to_owned()),
        Verdict::Revise(text) => (how, text.clone()),
        Verdict::Unusable(why) => (How::Failed, format!("no judgement: {why}")),
    };
    let mapped = Mapped::plain(how, Some(verdict.code()), shown);
    (how, mapped, Some(verdict))
}
