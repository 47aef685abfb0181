//! The answers of models, routers and tools in a test.

use super::{Fault, Out, World, fault, path};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use steersman_definition::test::{self, Gives, Script, ToolOutcome};
use steersman_machine::network::Source;
use steersman_machine::questions::Purpose;
use steersman_machine::snapshot::{Agent, Snapshot};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{LedgerEntry, Usage};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::outcome::{Answer, Ask, Failure, Mapped, Outcome, Retry};
use steersman_machine::tick::effect::{Offered, Said, Until, Wish, Work};
use steersman_machine::values::expression::Names;
use steersman_machine::values::price::Tokens;
use steersman_machine::view::mapping;
use steersman_machine::view::mapping::Raw;

/// State of an outstanding effect, by the thing that it waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// The effect runs.
    Ready,
    /// The decision of a person.
    Approval,
    /// A secret that a person is asked for; the index counts the tool's secrets.
    Input(usize),
    /// Somebody who knows whether the effect happened.
    Doubt,
    /// The answer of a person.
    Question,
    /// An event from outside.
    Event,
    /// The end of a wait for time.
    Timer,
    /// A point in time, at which this result arrives.
    Later(Time, Raw),
    /// The outcome is known and is offered again until it is taken.
    Told,
}

impl Held {
    /// Returns the state of a new wish.
    pub(super) fn of(wish: &Wish) -> Self {
        match &wish.work {
            Work::Tool(tool) if !tool.approve.is_empty() => Self::Approval,
            Work::Tool(tool) if !tool.inputs.is_empty() => Self::Input(0),
            Work::Ask { .. } => Self::Question,
            Work::Event { .. } => Self::Event,
            Work::Timer => Self::Timer,
            Work::Tool(_) | Work::Simulate(_) | Work::Model | Work::Send { .. } => Self::Ready,
        }
    }
}

/// Scripts of models and outcomes of tools.
#[derive(Clone, Debug, Default)]
pub struct Players {
    sections: Vec<(Script, Line)>,
    tools: BTreeMap<Name, (Vec<ToolOutcome>, usize)>,
}

impl Players {
    /// Adds a script that answers from a line on. Keys that it does not name are answered as before.
    pub fn script(&mut self, script: Script, began: Line) {
        self.sections.push((script, began));
    }

    /// Sets the outcomes of a tool, in order.
    pub fn tool(&mut self, name: &str, outcomes: Vec<ToolOutcome>) {
        self.tools.insert(name.into(), (outcomes, 0));
    }
}

impl World {
    /// Plays everything that can run, oldest first, until all outstanding effects wait for the outside.
    pub fn pump(&mut self) -> Result<(), Fault> {
        while let Some(effect) = self.ready.pop_front() {
            if let Some(out) = self.out.get(&effect).cloned()
                && (out.held == Held::Ready || self.dry_question(&out))
            {
                self.play(effect, &out)?;
            }
        }
        Ok(())
    }

    /// Returns true if the effect asks a person or waits for an event on a dry branch, where nobody answers.
    fn dry_question(&self, out: &Out) -> bool {
        self.at(out.branch).dry && matches!(out.wish.work, Work::Ask { .. } | Work::Event { .. })
    }

    /// Plays the given effect once.
    pub fn play(&mut self, effect: Id, out: &Out) -> Result<(), Fault> {
        let branch = out.branch;
        let outcome = match &out.wish.work {
            Work::Model => self.scripted(branch, effect, out.wish.agent)?,
            Work::Tool(tool) => match self.scripted_tool(&tool.tool)? {
                (Some(after), raw) => {
                    let at = self.now.plus(after);
                    self.hold(effect, Held::Later(at, raw));
                    return Ok(());
                }
                (None, raw) => return self.gives(effect, &raw),
            },
            Work::Simulate(_) => self.simulated(branch, out),
            Work::Ask { .. } => Outcome::Leaf("a question, and nobody is asked here".to_owned()),
            Work::Event { .. } => Outcome::Leaf("an event, and none comes here".to_owned()),
            Work::Send { to: None, name, .. } => {
                let why = format!("no `{name}` was started yet");
                self.gives(
                    effect,
                    &Raw::NotPerformed(mapping::Fault::new(Code::Failed, why)),
                )?;
                return Ok(());
            }
            Work::Send { to, message, .. } => {
                let to = *to;
                let sender = out.wish.agent;
                let message = message.clone();
                self.gives(effect, &Raw::Done(json!("Sent.")))?;
                let said = Said {
                    to,
                    sender: Some(sender),
                    ..self.said(&message)
                };
                self.offer(branch, vec![Offered::Message(said)])?;
                return Ok(());
            }
            Work::Timer => return Ok(()),
        };
        self.outcome(effect, outcome)
    }

    /// Offers the outcome of an effect.
    pub fn outcome(&mut self, effect: Id, outcome: Outcome) -> Result<(), Fault> {
        let Some(out) = self.out.get(&effect) else {
            return fault(format!("effect {effect} is not out"));
        };
        let branch = out.branch;
        let took = self.offer(
            branch,
            vec![Offered::Outcome {
                effect,
                attempt: 1,
                outcome,
            }],
        )?;
        let waits = took
            .left
            .iter()
            .any(|(_, until)| matches!(until, Until::Exchange(_)));
        if waits {
            self.hold(effect, Held::Told);
        } else if took.line.is_none() {
            return fault(format!(
                "the outcome of {effect} was not taken: {:?}",
                took.left
            ));
        }
        Ok(())
    }

    /// Maps the raw result of a tool, person or wait and offers the outcome.
    pub fn gives(&mut self, effect: Id, raw: &Raw) -> Result<(), Fault> {
        let (branch, owner, call) = self.place(effect)?;
        if let (Raw::Unknown(_), Work::Tool(tool)) = (raw, &self.out[&effect].wish.work)
            && !tool.class.is_free()
        {
            let tool = tool.clone();
            let ledger = self.doubt(effect, &tool);
            self.ledger_line(branch, ledger);
            self.hold(effect, Held::Doubt);
            return Ok(());
        }
        let mapped = mapping::map(&self.cx(), self.at(branch), owner, call, raw);
        self.mapped(effect, mapped)
    }

    /// Seals secret writes and offers the outcome.
    pub(super) fn mapped(&mut self, effect: Id, mut mapped: Mapped) -> Result<(), Fault> {
        for write in &mut mapped.writes {
            if write.seal && write.value.is_some() {
                write.value = Some(json!({ "$sealed": "test" }));
            }
        }
        self.outcome(effect, Outcome::Mapped(mapped))
    }

    /// Returns branch, owner and call of an outstanding effect of a call.
    pub(super) fn place(&self, effect: Id) -> Result<(Id, Id, Id), Fault> {
        let out = self.out.get(&effect);
        let out = out.ok_or_else(|| Fault(format!("effect {effect} is not out")))?;
        let call = out.wish.call();
        let call = call.ok_or_else(|| Fault(format!("effect {effect} is for no call")))?;
        Ok((out.branch, out.wish.agent, call))
    }

    pub(super) fn hold(&mut self, effect: Id, held: Held) {
        if let Some(out) = self.out.get_mut(&effect) {
            out.held = held;
        }
    }

    fn simulated(&self, branch: Id, out: &Out) -> Outcome {
        let call = out.wish.call();
        let mapped = call
            .and_then(|call| mapping::simulate(&self.cx(), self.at(branch), out.wish.agent, call));
        match mapped {
            Some(mapped) => Outcome::Mapped(mapped),
            None => Outcome::Leaf("nothing simulates this call".to_owned()),
        }
    }

    fn scripted_tool(&mut self, tool: &Name) -> Result<(Option<u64>, Raw), Fault> {
        if let Some((outcomes, at)) = self.players.tools.get_mut(tool) {
            let Some(outcome) = outcomes.get(*at) else {
                return fault(format!("the test has no {}. outcome of {tool}", *at + 1));
            };
            *at += 1;
            let raw = match &outcome.gives {
                Gives::Result(result) => outcome.done(result.clone()),
                Gives::Error { code, message } => {
                    Raw::NotPerformed(mapping::Fault::new(code, message.clone()))
                }
                Gives::Unknown => {
                    Raw::Unknown(mapping::Fault::new(Code::Timeout, "no answer came"))
                }
            };
            return Ok((outcome.after, raw));
        }
        match self.network.tools.get(tool).map(|t| &t.source) {
            Some(Source::State | Source::BuiltIn(_)) => Ok((None, Raw::Done(Json::Null))),
            _ => fault(format!(
                "the machine alone cannot run {tool}; give its outcomes under `tools`"
            )),
        }
    }

    /// Returns the next scripted answer of an agent. Its index is the number of calls of this purpose that the agent has made
    /// since the script began, or since the fork, if that is later, for a key with `@`.
    fn scripted(&self, branch: Id, effect: Id, agent: Id) -> Result<Outcome, Fault> {
        let snapshot = self.at(branch);
        let who = snapshot.agent(agent);
        let on = self.branch(branch);
        let labels = on.label.iter().map(ToString::to_string);
        let labels = labels.chain(std::iter::once(branch.to_string()));
        let labels: Vec<String> = labels.chain(on.index.map(|i| i.to_string())).collect();
        let purpose = steersman_machine::context::purpose(&self.cx(), snapshot, agent);
        let mut keys = keys(snapshot, who, &labels);
        if let Some(beside) = purpose.beside() {
            for key in &mut keys {
                key.push('#');
                key.push_str(beside);
            }
        }
        let found = self
            .players
            .sections
            .iter()
            .rev()
            .find_map(|(script, began)| {
                let key = keys.iter().find(|k| script.0.contains_key(*k))?;
                Some((key, &script.0[key], *began))
            });
        let Some((key, answers, began)) = found else {
            return fault(format!("nothing answers for {}", keys[0]));
        };
        let mut base = self.calls_at(began, agent, purpose);
        if key.contains('@') {
            base = base.max(self.calls_at(snapshot.forked_at, agent, purpose));
        }
        let number = purpose.calls(&who.counters).saturating_sub(base) as usize;
        let Some(answer) = answers.get(number) else {
            return fault(format!("{key} has no {}. answer", number + 1));
        };
        let label = labels.first().map_or("", String::as_str);
        let answer = answer.drawn(steersman_machine::search::draw(
            1,
            &keys[0],
            label,
            number as u32,
        ));
        let mut outcome = played(effect, answer).map_err(Fault)?;
        if self.counts_tokens()
            && let Outcome::Answer(answer) = &mut outcome
        {
            answer.usage.output = tokens(answer);
            let model = self.network.in_force(who);
            let model = model.and_then(|model| self.network.models.get(&model.model));
            let paid = Tokens {
                output: answer.usage.output,
                ..Tokens::default()
            };
            answer.usage.micros = model.and_then(|m| m.price).map(|price| price.of(paid));
        }
        Ok(outcome)
    }

    /// Returns true if the definition limits tokens or cost. Otherwise tokens are not counted.
    fn counts_tokens(&self) -> bool {
        let session = self.network.limits.tokens.is_some_and(|l| l.written);
        let mut agents = self.network.agents.values();
        session
            || self.network.limits_cost()
            || agents.any(|a| a.all_limits().any(|limits| limits.tokens.is_some()))
    }

    /// Returns the number of model calls of this purpose that an agent had made at a line.
    fn calls_at(&self, line: Line, agent: Id, purpose: Purpose) -> u32 {
        let then = self.after(line);
        let agent = then.agents.get(&agent);
        agent.map_or(0, |a| purpose.calls(&a.counters))
    }

    /// Adds a ledger entry to the next line.
    pub(super) fn note(&mut self, entry: LedgerEntry) {
        self.entries.push(entry);
    }
}

/// Returns the keys under which a script may answer for an agent, the most specific first.
fn keys(snapshot: &Snapshot, agent: &Agent, labels: &[String]) -> Vec<String> {
    let mut names = vec![path(snapshot, agent.id)];
    names.extend(agent.family.named.as_ref().map(ToString::to_string));
    names.push(agent.def.to_string());
    let on_branch = labels
        .iter()
        .flat_map(|l| names.iter().map(move |n| format!("{n}@{l}")));
    on_branch.chain(names.iter().cloned()).collect()
}

/// Returns the size of an answer in tokens, four bytes each, as other scripted models count them.
fn tokens(answer: &Answer) -> u64 {
    let said = answer.text.as_ref().map_or(0, String::len);
    let asked = answer
        .asks
        .iter()
        .map(|ask| ask.name.len() + ask.args.len());
    (said as u64 + asked.sum::<usize>() as u64).div_ceil(4)
}

/// Returns a scripted answer as a model would give it.
fn played(effect: Id, answer: &test::Answer) -> Result<Outcome, String> {
    if let Some(code) = &answer.error {
        return Ok(Outcome::Failed(Failure {
            code: code.clone(),
            message: format!("the script says {code}"),
            retry: Retry::Never,
        }));
    }
    let text = match (&answer.text, &answer.output) {
        (Some(text), ..) => {
            let names = Names::from_json(json!({}));
            Some(text.render(&names).map_err(|e| e.to_string())?)
        }
        (None, Some(output)) => Some(output.to_string()),
        (None, None) => answer.verdict(),
    };
    let asks = answer.calls.iter().map(|(name, args)| Ask {
        name: name.clone(),
        label: None,
        args: match args {
            // A text is passed on as it is: models give arguments that are not objects, too.
            Json::String(text) => text.clone(),
            args => args.to_string(),
        },
        misfit: None,
    });
    Ok(Outcome::Answer(Answer {
        text,
        asks: asks.collect(),
        usage: Usage {
            effect: Some(effect),
            ..Usage::default()
        },
        ..Answer::default()
    }))
}

impl World {
    /// Lets the model of an agent on a branch answer with a text (empty means none) and calls.
    pub fn thinks(
        &mut self,
        branch: Id,
        agent: &str,
        text: &str,
        calls: &[(&str, Json)],
    ) -> Result<(), Fault> {
        let found = self.agent(branch, agent);
        let id = found.ok_or_else(|| Fault(format!("there is no agent {agent}")))?;
        let Some(effect) = self.at(branch).agent(id).stack.owed else {
            return fault(format!("{agent} owes nothing on {branch}"));
        };
        let answer = test::Answer {
            text: (!text.is_empty())
                .then(|| steersman_machine::values::expression::Template::plain(text)),
            calls: calls
                .iter()
                .map(|(name, args)| ((*name).to_owned(), args.clone()))
                .collect(),
            ..test::Answer::default()
        };
        let outcome = played(effect, &answer).map_err(Fault)?;
        self.outcome(effect, outcome)
    }

    /// Lets the oldest running call of a tool on a branch return a result.
    pub fn returns(&mut self, branch: Id, tool: &str, result: Json) -> Result<(), Fault> {
        let Some(effect) = self.find(branch, &Held::Ready, tool) else {
            return fault(format!("{tool} does not run on {branch}"));
        };
        self.gives(effect, &Raw::Done(result))
    }
}
