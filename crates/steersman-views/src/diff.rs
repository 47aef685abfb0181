//! The differences between two branches or two sessions; what they have in common is left out.

use crate::essence::{essential, in_call_order};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::network::{Does, RouteBy};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Bodies, Body, Id, Line};
use steersman_machine::stored::interaction::{Cause, End, How, Interaction, Target};
use steersman_machine::stored::parts::Parts;
use steersman_machine::stored::words::cause_word;
use steersman_machine::view::rating;
use steersman_runtime::branches;
use steersman_runtime::engine::{BranchView, Engine, EngineError, Inspection};
use steersman_runtime::known::Known;
use steersman_runtime::ledger::Amount;
use steersman_runtime::session::Settled;

/// A value of each side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Both<T> {
    /// Value of the first side.
    pub a: T,
    /// Value of the second side.
    pub b: T,
}

impl<T: PartialEq> Both<T> {
    fn differs(&self) -> bool {
        self.a != self.b
    }
}

/// The first difference between the stacks of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct First {
    /// The agent, by names from the root down.
    pub agent: String,
    /// Number of equal interactions before it.
    pub after: usize,
    /// The interaction of the first side; `None` if its stack has ended.
    pub a: Option<String>,
    /// The interaction of the second side; `None` if its stack has ended.
    pub b: Option<String>,
    /// The lines of the log that hold them.
    pub lines: Both<Option<u64>>,
}

/// A tool call and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Deed {
    /// The agent that called it, by names from the root down.
    pub agent: String,
    /// The name of the tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub args: String,
    /// The end of the call: `done`, `failed`, `refused`; `open` while it has not ended. A call that was simulated or
    /// answered from a recording counts as `done`.
    pub how: String,
}

/// The differences between two sessions or branches. Agents are matched by their path. Ids, lines, times and approvers are
/// ignored; so is whether an effect happened or was simulated with the same result.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Diff {
    /// The result of each side, by the values of its `outcome:`.
    pub outcome: Both<Json>,
    /// The status of each side: `answered`, `failed`, `limit`, `leaf`, `waits`.
    pub ended: Both<String>,
    /// The last answer of each side.
    pub answer: Both<Option<String>>,
    /// True if a definition has an `outcome:`; else the last answers are compared.
    pub named: bool,
    /// For each agent whose stacks differ, the first difference.
    pub first: Vec<First>,
    /// Choices of routers, and states and modes that were entered, in order.
    pub path: Both<Vec<String>>,
    /// Tool calls, in order.
    pub tools: Both<Vec<Deed>>,
    /// Answers that the user heard.
    pub answers: Both<Vec<String>>,
    /// State entries that differ, by path.
    pub state: BTreeMap<String, Both<Json>>,
    /// Number of model calls.
    pub model_calls: Both<u64>,
    /// Input and output tokens, including those of recorded answers.
    pub tokens: Both<u64>,
    /// Cost in millionths of the currency, including that of recorded answers.
    pub micros: Both<u64>,
}

impl Diff {
    /// Returns true if the results differ (the values of `outcome:`, or the last answers if no definition has one), or the
    /// status.
    pub fn outcome_differs(&self) -> bool {
        let came = if self.named {
            self.outcome.differs()
        } else {
            self.answer.differs()
        };
        came || self.ended.differs()
    }

    /// Returns the differences as JSON, with the keys `differs` (the results differ) and `empty` (nothing differs).
    pub fn to_json(&self) -> Json {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        document["differs"] = self.outcome_differs().into();
        document["empty"] = self.is_empty().into();
        document
    }

    /// Masks the values of secrets in all texts.
    fn mask(&mut self, known: &Known) {
        let text = |text: &mut String| *text = known.masked(text);
        let texts = |list: &mut Vec<String>| list.iter_mut().for_each(text);
        for side in [&mut self.outcome.a, &mut self.outcome.b] {
            known.mask_data(side);
        }
        for side in [&mut self.answer.a, &mut self.answer.b] {
            side.iter_mut().for_each(text);
        }
        for first in &mut self.first {
            first.a.iter_mut().for_each(text);
            first.b.iter_mut().for_each(text);
        }
        for side in [&mut self.path, &mut self.answers] {
            texts(&mut side.a);
            texts(&mut side.b);
        }
        for deed in self.tools.a.iter_mut().chain(&mut self.tools.b) {
            text(&mut deed.args);
        }
        for both in self.state.values_mut() {
            known.mask_data(&mut both.a);
            known.mask_data(&mut both.b);
        }
    }

    /// Returns true if nothing that was said, called, chosen or written differs.
    pub fn is_empty(&self) -> bool {
        !self.outcome_differs()
            && self.first.is_empty()
            && self.state.is_empty()
            && !self.path.differs()
            && !self.tools.differs()
            && !self.answers.differs()
    }
}

/// Compares two branches, of one session or of two. The comparison uses the stored texts; in the result, values of secrets that
/// either session knows read `(secret)`.
pub fn compare(a: &Side, b: &Side) -> Diff {
    let mut diff = compared(a, b);
    let mut known = (*a.known).clone();
    known.and(&b.known);
    diff.mask(&known);
    diff
}

/// A branch with the lines that led to its head.
pub struct Side {
    seen: Inspection,
    at: usize,
    path: Vec<Arc<LogLine>>,
    known: Arc<Known>,
}

impl Bodies for Side {
    fn parts(&self, body: Body) -> Parts {
        self.seen.history.parts(body)
    }
}

type Stack = Vec<(Line, Interaction)>;

/// An agent and its stack.
struct Stood {
    place: Vec<u32>,
    name: String,
    stack: Stack,
}

impl Side {
    /// Reads a branch: all lines that led to its head, and where a line adopted a branch, the lines of that branch too. `None` means
    /// the current branch. Returns `None` if the session has no such branch.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn read(
        engine: &Engine,
        id: &str,
        branch: Option<Id>,
    ) -> Result<Option<Self>, EngineError> {
        let seen = engine.inspect(id).await?;
        let branch = branch.unwrap_or(seen.current);
        let Some(at) = seen.branches.iter().position(|b| b.id == branch) else {
            return Ok(None);
        };
        let lines = engine.feed(id, Line::NONE).lines().await?;
        let known = Arc::new(engine.secrets_in(&seen, &lines).await?);
        let line = |n: Line| {
            let at = lines.binary_search_by_key(&n, |line| line.n).ok()?;
            Some(lines[at].clone())
        };
        let (mut found, mut todo) = (BTreeMap::new(), vec![seen.branches[at].snapshot.line]);
        while let Some(n) = todo.pop() {
            let Some(line) = line(n).filter(|line| !found.contains_key(&line.n)) else {
                continue;
            };
            todo.push(line.prev);
            let commit = line.commit.as_ref();
            todo.extend(commit.and_then(|c| Some(c.adoption.as_ref()?.at)));
            found.insert(n, line);
        }
        Ok(Some(Self {
            seen,
            at,
            path: found.into_values().collect(),
            known,
        }))
    }

    fn branch(&self) -> &BranchView {
        &self.seen.branches[self.at]
    }

    /// Returns the stacks of all agents, ordered by their place in the tree of starts.
    fn stacks(&self) -> Vec<Stood> {
        let branch = self.branch();
        let agents = branch.snapshot.agents.values();
        let mut stacks: Vec<Stood> = agents
            .map(|agent| Stood {
                place: agent.family.path.to_vec(),
                name: branches::path(&branch.snapshot, agent.id),
                stack: self.seen.stack(branch, agent.id),
            })
            .collect();
        stacks.sort_by(|a, b| a.place.cmp(&b.place));
        stacks
    }

    /// Returns the label of a branch by its id as text.
    fn label(&self, id: &str) -> Option<String> {
        let mut all = self.seen.branches.iter();
        let branch = all.find(|b| b.id.to_string() == id)?;
        branch.label.as_ref().map(ToString::to_string)
    }

    fn state(&self) -> BTreeMap<String, Json> {
        let snapshot = &self.branch().snapshot;
        let cells = snapshot.state.iter().map(|((scope, name), cell)| {
            let value = if cell.value.is_sealed() {
                "(sealed)".into()
            } else {
                cell.value.0.as_ref().clone()
            };
            let path = if let Some(rated) = rating::told_in(snapshot, *scope, name) {
                format!("rating of {rated}")
            } else if Some(*scope) == snapshot.root {
                format!("state.{name}")
            } else {
                format!("{}.state.{name}", branches::path(snapshot, *scope))
            };
            (path, value)
        });
        cells.filter(|(_, value)| !value.is_null()).collect()
    }

    fn ended(&self) -> String {
        let branch = self.branch();
        let leaf = branch.snapshot.agents.values().any(|agent| {
            agent
                .turn
                .ended
                .is_some_and(|(_, cause)| cause == Cause::Leaf)
        });
        match self.seen.settled_on(branch) {
            _ if leaf => "leaf".to_owned(),
            // A dry branch does not wait for everything, so the kind of wait is not compared.
            Settled::Asks(_) | Settled::Waits(_) | Settled::Doubt(_) => "waits".to_owned(),
            settled => settled.word().to_owned(),
        }
    }

    fn answer(&self) -> Option<String> {
        match self.seen.settled_on(self.branch()) {
            Settled::Answered { text, .. } => Some(text.to_string()),
            _ => None,
        }
    }

    fn chosen(&self) -> Vec<String> {
        let snapshot = &self.branch().snapshot;
        let name = |agent: Id| branches::path(snapshot, agent);
        let mut chosen = Vec::new();
        for commit in self.path.iter().filter_map(|line| line.commit.as_ref()) {
            for push in &commit.pushes {
                if let Interaction::Route(route) = &push.what {
                    let what = steersman_machine::trace::chosen(&route.chosen, self);
                    chosen.push(format!("{} -> {what}", name(push.agent)));
                }
            }
            for (agent, state) in commit.states() {
                chosen.push(format!("{} in {state}", name(agent)));
            }
            for (agent, mode, _) in commit.modes() {
                chosen.push(format!("{} in mode {mode}", name(agent)));
            }
        }
        chosen
    }

    fn tools(&self) -> Vec<Deed> {
        let snapshot = &self.branch().snapshot;
        let mut deeds: Vec<(Id, Deed)> = Vec::new();
        let pushes = self.path.iter().filter_map(|line| line.commit.as_ref());
        for push in pushes.flat_map(|commit| &commit.pushes) {
            match &push.what {
                Interaction::Call(call) if matches!(call.target, Target::Tool(_)) => {
                    let deed = Deed {
                        agent: branches::path(snapshot, push.agent),
                        tool: call.name.to_string(),
                        args: self.text(call.args).to_string(),
                        how: "open".to_owned(),
                    };
                    deeds.push((call.id, deed));
                }
                Interaction::Result(result) => {
                    let deed = deeds.iter_mut().rev().find(|(id, _)| *id == result.call);
                    if let Some((_, deed)) = deed {
                        ended_as(result.how).clone_into(&mut deed.how);
                    }
                }
                _ => {}
            }
        }
        deeds.into_iter().map(|(_, deed)| deed).collect()
    }

    /// Returns the texts that the user or caller heard, in order: ends of turns and of the root's tasks, and under a
    /// concierge the final texts of its speakers. Drafts are left out.
    fn answers(&self) -> Vec<String> {
        let root = self.branch().snapshot.root;
        let is_desk = self.is_desk();
        let commits = self.path.iter().filter_map(|line| line.commit.as_ref());
        let mut answers: Vec<String> = Vec::new();
        for push in commits.flat_map(|commit| &commit.pushes) {
            let is_root = Some(push.agent) == root;
            match &push.what {
                // A failure is not an answer; `ended` reports it.
                Interaction::Finished {
                    cause: Cause::Failed,
                    ..
                } => {}
                Interaction::Finished {
                    end,
                    body: Some(body),
                    ..
                } if *end == End::Turn || (is_root && *end == End::Task) => {
                    let text = self.text(*body).to_string();
                    // A concierge's final text repeats that of its speaker, which is already listed.
                    if !(is_root && is_desk && answers.last() == Some(&text)) {
                        answers.push(text);
                    }
                }
                Interaction::Result(result)
                    if is_root && is_desk && result.how == How::Finished =>
                {
                    answers.extend(result.body.map(|body| self.text(body).to_string()));
                }
                _ => {}
            }
        }
        answers
    }

    fn is_desk(&self) -> bool {
        let def = self.branch().snapshot.root_agent().map(|agent| &agent.def);
        let network = self.seen.network.as_ref();
        let does = def.and_then(|def| Some(&network?.agents.get(def)?.does));
        matches!(does, Some(Does::Route(route)) if matches!(route.by, RouteBy::Tasks(_)))
    }

    /// Returns the number of model calls on the path, and their tokens and cost.
    fn used(&self) -> (u64, Amount) {
        let commits = self.path.iter().filter_map(|line| line.commit.as_ref());
        let usage = commits.flat_map(|commit| &commit.usage);
        usage.fold((0, Amount::default()), |(calls, sum), used| {
            let took = Amount::new(used.tokens(), used.micros.unwrap_or(0));
            (calls + 1, sum.plus(took))
        })
    }
}

fn ended_as(how: How) -> &'static str {
    match how {
        How::Done | How::Simulated | How::DoneBefore | How::Finished | How::Released => "done",
        How::Failed => "failed",
        How::Refused => "refused",
        How::Cancelled => "cancelled",
        How::Unknown => "in doubt",
        How::NotInThisBranch => "not in this branch",
        How::Limit => "limit",
        How::Expired => "expired",
    }
}

/// Renders an interaction for people: branches by their labels, no word repeated.
fn shown(interaction: &Interaction, of_branches: bool, of: &Side) -> String {
    match interaction {
        Interaction::Call(call) if matches!(call.target, Target::Branches(_)) => {
            let text = of.text(call.args);
            let mut args: Json = serde_json::from_str(&text).unwrap_or_default();
            let named = args.get_mut("branches").and_then(Json::as_array_mut);
            for branch in named.into_iter().flatten() {
                let label = branch.as_str().and_then(|id| of.label(id));
                *branch = label.map_or_else(|| branch.take(), Json::from);
            }
            format!("call {} {args}", call.name)
        }
        Interaction::Result(result) => {
            let text = result.body.map(|body| of.text(body).to_string());
            let how = ended_as(result.how);
            let mut words = vec![how.to_owned()];
            let code = result.code.as_deref();
            // The engine's message for a code begins with the code.
            let again = code.zip(text.as_deref());
            let again = again.and_then(|(code, text)| text.strip_prefix(code)?.strip_prefix(": "));
            let again = again.map(str::to_owned);
            let code = code.filter(|code| code.replace('_', " ") != how);
            words.extend(code.map(str::to_owned));
            words.extend(again.or(text));
            in_words("result", words)
        }
        Interaction::Finished {
            cause, body, code, ..
        } => {
            let mut words = vec![cause_word(*cause).to_owned()];
            words.extend(code.iter().map(ToString::to_string));
            words.extend(body.map(|body| of.text(body).to_string()));
            in_words("finished", words)
        }
        Interaction::UserMessage { body, .. } => format!("message {}", of.text(*body)),
        Interaction::AssistantMessage { text, partial, .. } => match text {
            Some(text) if *partial => format!("answer {} (cut off)", of.text(*text)),
            Some(text) => format!("answer {}", of.text(*text)),
            None => "answer without a text".to_owned(),
        },
        Interaction::Summary(summary) => format!("summary {}", of.text(summary.body)),
        other => comparable(other, of_branches, of),
    }
}

/// Joins words like `result done: ok`, each word once.
fn in_words(what: &str, words: Vec<String>) -> String {
    let mut said: Vec<String> = Vec::new();
    for word in words {
        if !word.is_empty() && !said.contains(&word) {
            said.push(word);
        }
    }
    format!("{what} {}", said.join(": "))
}

/// Renders an interaction for comparison, without what always differs between two sessions.
fn comparable(interaction: &Interaction, of_branches: bool, texts: &Side) -> String {
    match interaction {
        Interaction::Result(result) if result.how == How::Simulated => {
            let mut result = result.clone();
            result.how = How::Done;
            essential(&Interaction::Result(result), of_branches, texts)
        }
        other => essential(other, of_branches, texts),
    }
}

fn compared(a: &Side, b: &Side) -> Diff {
    let both = |of: &dyn Fn(&Side) -> String| Both { a: of(a), b: of(b) };
    let (stacks_a, stacks_b) = (a.stacks(), b.stacks());
    let none = Stack::new();
    let matched = matched(&stacks_a, &stacks_b).into_iter();
    let first = matched.filter_map(|(one, other)| {
        let name = &one.or(other)?.name;
        let one = one.map_or(&none, |stood| &stood.stack);
        let other = other.map_or(&none, |stood| &stood.stack);
        diverge(name.clone(), (a, one), (b, other))
    });
    let (state_a, state_b) = (a.state(), b.state());
    let entries: BTreeSet<&String> = state_a.keys().chain(state_b.keys()).collect();
    let state = entries.into_iter().filter_map(|path| {
        let value = |of: &BTreeMap<String, Json>| of.get(path).cloned().unwrap_or_default();
        let both = Both {
            a: value(&state_a),
            b: value(&state_b),
        };
        both.differs().then(|| (path.clone(), both))
    });
    let named = |of: &Side| {
        of.seen
            .network
            .as_ref()
            .is_some_and(|n| !n.outcome.is_empty())
    };
    let (used_a, used_b) = (a.used(), b.used());
    Diff {
        outcome: Both {
            a: a.seen.outcome_on(a.branch()),
            b: b.seen.outcome_on(b.branch()),
        },
        ended: both(&Side::ended),
        answer: Both {
            a: a.answer(),
            b: b.answer(),
        },
        named: named(a) || named(b),
        first: first.collect(),
        path: Both {
            a: a.chosen(),
            b: b.chosen(),
        },
        tools: Both {
            a: a.tools(),
            b: b.tools(),
        },
        answers: Both {
            a: a.answers(),
            b: b.answers(),
        },
        state: state.collect(),
        model_calls: Both {
            a: used_a.0,
            b: used_b.0,
        },
        tokens: Both {
            a: used_a.1.tokens,
            b: used_b.1.tokens,
        },
        micros: Both {
            a: used_a.1.micros,
            b: used_b.1.micros,
        },
    }
}

/// Pairs the agents of both sides: by place and name, else by name. Agents of only one side come last.
fn matched<'s>(a: &'s [Stood], b: &'s [Stood]) -> Vec<(Option<&'s Stood>, Option<&'s Stood>)> {
    let mut left: Vec<&Stood> = b.iter().collect();
    let mut take = |like: &dyn Fn(&Stood) -> bool| {
        let at = left.iter().position(|other| like(other))?;
        Some(left.remove(at))
    };
    let exact: Vec<Option<&Stood>> = a
        .iter()
        .map(|one| take(&|other| other.place == one.place && other.name == one.name))
        .collect();
    let mut pairs: Vec<_> = a
        .iter()
        .zip(exact)
        .map(|(one, exact)| {
            let other = exact.or_else(|| take(&|other| other.name == one.name));
            (Some(one), other)
        })
        .collect();
    pairs.extend(left.into_iter().map(|other| (None, Some(other))));
    pairs
}

/// Returns the first difference between the stacks of an agent; `None` if they are equal.
fn diverge(agent: String, a: (&Side, &Stack), b: (&Side, &Stack)) -> Option<First> {
    // Results are compared in the order of their calls, and each entry keeps its line.
    let entries = [a, b].map(|(_, stack)| in_call_order(stack, |(_, i)| i));
    let row = |side: usize, n: usize| {
        let ((_, interaction), of) = entries[side].get(n)?;
        Some(comparable(interaction, *of, [a.0, b.0][side]))
    };
    let most = entries[0].len().max(entries[1].len());
    let same = (0..most).find(|n| row(0, *n) != row(1, *n))?;
    let shown = |side: usize| {
        let ((_, interaction), of) = entries[side].get(same)?;
        Some(shown(interaction, *of, [a.0, b.0][side]))
    };
    let line = |side: usize| entries[side].get(same).map(|((line, _), _)| line.0);
    Some(First {
        agent,
        after: same,
        a: shown(0),
        b: shown(1),
        lines: Both {
            a: line(0),
            b: line(1),
        },
    })
}
