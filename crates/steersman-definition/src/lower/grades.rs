//! Lowers the grades of a definition.

use super::super::diagnostic::Diagnostic;
use super::super::grade::{EXPECT, Expected, Grade, Judge, Measure};
use super::super::keys::kinds::{Read as _, Valued, each};
use super::super::keys::test as keys;
use super::super::site::{Scope, Wants};
use super::super::source::Node;
use super::{Lower, Sort};
use std::collections::BTreeMap;
use steersman_machine::network::AgentDef;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::TypeKind;

impl Lower<'_> {
    pub(super) fn grades(&mut self, agents: &BTreeMap<Name, AgentDef>) -> BTreeMap<String, Grade> {
        let mut grades = BTreeMap::new();
        for (key, grade) in each(self.file.grades()) {
            self.meaningful_keys(grade);
            if &*key.name == EXPECT {
                let at = self.place(key.span);
                self.say(Diagnostic::malformed(
                    at,
                    EXPECT,
                    "a free name for a grade: the expectations of tests have it",
                ));
            }
            if let Some(measure) = self.measure(grade, agents) {
                let grade = Grade {
                    measure,
                    cases: grade.cases().and_then(Valued::value),
                    written: grade.0.to_json(),
                };
                grades.insert(key.name.to_string(), grade);
            }
        }
        grades
    }

    /// Returns what a grade measures; `None` if that was reported.
    fn measure(
        &mut self,
        grade: keys::Grade<'_>,
        agents: &BTreeMap<Name, AgentDef>,
    ) -> Option<Measure> {
        let scope = Scope {
            item: Some(grade.0.span),
            answer: true,
            outcome: true,
            ..Scope::default()
        };
        if let Some(that) = grade.that() {
            return self.expr(&that, Wants::Value, &scope).map(Measure::That);
        }
        if let Some(value) = grade.value() {
            let value = self.expr(&value, Wants::Value, &scope);
            let expected = self.expected(grade);
            return Some(Measure::Value {
                value: value?,
                expected: expected?,
            });
        }
        let rubric = grade.rubric()?.value()?;
        let judge = self.judge_of(grade, agents)?;
        Some(Measure::Rubric { rubric, judge })
    }

    fn expected(&mut self, grade: keys::Grade<'_>) -> Option<Expected> {
        match (grade.is(), grade.expected()) {
            (Some(is), None) => Some(Expected::Same(is.0.to_json())),
            (None, Some(cases)) => {
                let cases =
                    each(Some(cases)).map(|(key, value)| (key.name.to_string(), value.0.to_json()));
                Some(Expected::Cases(cases.collect()))
            }
            (Some(is), Some(cases)) => {
                self.only_one("`is`, `expected`", is.0, cases.node());
                None
            }
            (None, None) => {
                let at = self.place(grade.0.span);
                self.say(Diagnostic::none_of(
                    at,
                    "a grade with `value`",
                    "`is`, `expected`",
                ));
                None
            }
        }
    }

    fn judge_of(
        &mut self,
        grade: keys::Grade<'_>,
        agents: &BTreeMap<Name, AgentDef>,
    ) -> Option<Judge> {
        let Some(judge) = grade.judge() else {
            return Some(Judge::Model(self.model_name(grade.model())));
        };
        if let Some(model) = grade.model() {
            self.only_one("`judge`, `model`", judge.0, model.0);
        }
        let name = self.named(&judge, Sort::Agent)?;
        let output = agents.get(&name)?.output.as_ref();
        let decides = |ty: &TypeKind| match ty {
            TypeKind::Fields(fields) => fields.iter().any(|(name, ty)| {
                &**name == "pass" && ty.kind == TypeKind::Boolean && !ty.optional
            }),
            _ => false,
        };
        if !output.is_some_and(|output| decides(&output.ty.kind)) {
            let at = self.place(judge.0.span);
            self.say(Diagnostic::malformed(
                at,
                &name,
                "an agent that can judge: its `output` needs `fields` with `pass: boolean`",
            ));
        }
        Some(Judge::Agent(name))
    }

    fn only_one(&mut self, keys: &str, one: &Node, other: &Node) {
        let (at, other) = (self.place(other.span), self.place(one.span));
        self.say(Diagnostic::not_together(at, "a grade", keys, other));
    }
}
