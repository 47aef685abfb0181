//! A session on one page: its branches, its state, its effects and agents, and what it waits for.

use crate::cause::Reason;
use crate::effects::{Effect, Effects, Sum};
use crate::essence::{essential, in_call_order};
use crate::list::{PendingRow, SessionRow, may_expire, status};
use crate::log::Log;
use crate::shown;
use crate::story::{Row, Story, Tone};
use crate::words::{self, Word};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::{Agent, Cell, Phase, Snapshot};
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::Cause;
use steersman_machine::trace;
use steersman_machine::view::artifact;
use steersman_machine::view::rating;
use steersman_machine::view::rating::is_rating;
use steersman_runtime::branches::path;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::known::Known;
use steersman_runtime::ledger::Ledger;
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::session::Settled;

/// The subject of a page.
#[derive(Copy, Clone)]
pub struct Subject<'a> {
    /// The session, [masked](steersman_runtime::known::Known::mask_inspection).
    pub seen: &'a Inspection,
    /// The log of the session, as its reader shows it.
    pub log: &'a Log,
    /// The definitions that it was bound to, by the line of the binding.
    pub bound: &'a BTreeMap<Line, Arc<Network>>,
    /// The secrets that it knows.
    pub known: &'a Known,
    /// The branch whose state the page shows.
    pub branch: &'a BranchView,
    /// True if the page is of this branch alone; false if it is of the session.
    pub alone: bool,
    /// The line up to which the page goes; `None` means the present.
    pub line: Option<Line>,
}

/// A session on one page.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Page {
    /// Its row in lists.
    #[serde(flatten)]
    pub row: SessionRow,
    /// The result, if the session has settled. A settled session continues only with an input.
    #[serde(flatten)]
    pub settled: Standing,
    /// Usage by the model that answered, which may be a fallback.
    pub models: Vec<ModelRow>,
    /// Money spent, in millionths of the currency.
    #[serde(skip)]
    pub micros: u64,
    /// Number of calls whose provider reported impossible numbers.
    pub unbelievable: u64,
    /// Tokens and money of model calls whose answers were not used, such as calls that were cut.
    pub lost: Lost,
    /// The branch of the page, by label or id.
    pub branch: String,
    /// The current branch, by label or id.
    pub current: Option<String>,
    /// The agents, from the root down.
    pub agents: Vec<AgentRow>,
    /// The letters that occur in the stacks of the agents, each with its meaning.
    pub legend: BTreeMap<String, Word>,
    /// The state by name. Entries of agents below the root are prefixed with the agent's path.
    pub state: Map<String, Json>,
    /// The branches, in the order in which they were opened.
    pub branches: Vec<BranchRow>,
    /// Effects of tools. Empty on a page in brief.
    #[serde(skip_deserializing)]
    pub effects: Vec<Effect>,
    /// Sums of effects by tool.
    pub sums: BTreeMap<Name, Sum>,
    /// The artifacts whose newest version is rated.
    pub rated: Vec<Rated>,
    /// Everything that it waits for.
    #[serde(skip_deserializing)]
    pub holds: Vec<PendingRow>,
    /// Standing orders of people.
    pub orders: Vec<String>,
    /// Time at which its texts are erased, if it has ended and its definition keeps sessions for a time only.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "shown::optional_time",
        deserialize_with = "shown::read::optional_time",
        default
    )]
    pub erased_at: Option<Time>,
    /// Number of messages in its inbox.
    pub inbox: usize,
    /// Messages in its inbox that this program cannot read, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unread: Vec<String>,
}

/// The result of a session.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Standing {
    /// Texts for the user that come before the answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<Arc<str>>,
    /// The answer that settled the session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<Arc<str>>,
    /// The code of a failure or limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<Arc<str>>,
    /// The message of a failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<Arc<str>>,
    /// The first cause of a failure or limit, if this is how the session stands now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
}

/// Usage of one model.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ModelRow {
    /// Provider and model.
    pub model: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Money spent, as far as it is known.
    pub cost: f64,
    /// The same in millionths of the currency.
    #[serde(skip)]
    pub micros: u64,
}

/// Tokens and money of model calls whose answers were not used.
#[derive(Copy, Clone, Debug, Deserialize, Serialize)]
pub struct Lost {
    /// Number of tokens.
    pub tokens: u64,
    /// Money, in the currency of the prices.
    pub cost: f64,
}

/// An agent of a session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AgentRow {
    /// Id of the instance, `n.k`.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub id: Id,
    /// Its name in the definition.
    pub name: Name,
    /// Its place, by names from the root down.
    pub path: String,
    /// Its phase: `resting`, `thinking`, `routing`, `calling`.
    pub phase: String,
    /// The agent to which it gave the floor and that rests: nothing is owed until a person speaks, although its call is open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub floor: Option<Name>,
    /// The state of its net, if it has one.
    pub net_state: Option<Name>,
    /// Its stack in the letters of a trace, oldest first: `U A AC AR A F`.
    pub letters: String,
    /// Its stack as text, results in the order of their calls. Empty on a page in brief.
    pub stack: Vec<String>,
    /// Number of interactions on its stack.
    pub height: u32,
    /// Number of its model calls.
    pub model_calls: u32,
}

/// A branch of a session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BranchRow {
    /// Id of the branch, `n.k`.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub id: Id,
    /// The label that the call or the person gave to the branch.
    pub label: Option<Name>,
    /// The branch and line at which it began; `None` for `main`.
    pub from: Option<From>,
    /// The newest line of the branch.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub head: Line,
    /// True if effects that touch the world are not run on it.
    pub dry: bool,
    /// True if its top agent rests.
    pub ended: bool,
    /// True if the branch is superseded: it does not continue, unless it becomes the current one again.
    pub superseded: bool,
    /// If the branch is superseded: its last line that counts.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub left_after: Option<Line>,
    /// True if a person cancelled it, or the agent that forked it no longer waits for it.
    pub cancelled: bool,
    /// True if it began with a rewind.
    pub rewound: bool,
    /// The person or program that forked it or went back. `None` for an anonymous user, and for an agent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<Name>,
    /// The line in which the call that waited for this branch received its result.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub joined: Option<Line>,
    /// The last line of it that was adopted.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub adopted: Option<Line>,
    /// True for a branch that an agent forked.
    pub of_agent: bool,
    /// If the page is of one branch, and this branch is on the path to it: the last line of this branch on the path.
    #[serde(
        serialize_with = "shown::maybe_line",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "shown::read::maybe_line",
        default
    )]
    pub upto: Option<Line>,
}

/// The beginning of a branch.
#[derive(Copy, Clone, Debug, Deserialize, Serialize)]
pub struct From {
    /// The branch that it left.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub branch: Id,
    /// The line at which it left that branch.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
}

/// A rated artifact.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Rated {
    /// Name of the artifact.
    pub name: String,
    /// The rating, from 1 to [`rating::BEST`].
    pub rating: u8,
    /// The agent or person who rated it.
    pub by: String,
}

impl BranchRow {
    /// Returns its label, otherwise its id.
    pub fn name(&self) -> String {
        self.label
            .as_ref()
            .map_or_else(|| self.id.to_string(), ToString::to_string)
    }

    /// Returns true if it can still end.
    pub fn is_open(&self) -> bool {
        !self.ended && !self.cancelled && self.from.is_some() && self.left_after.is_none()
    }
}

/// The rows that are told of each end of a story.
#[derive(Copy, Clone, Debug)]
pub struct Ends {
    /// Number of rows at the beginning.
    pub first: usize,
    /// Number of rows at the end.
    pub last: usize,
}

/// The story of a branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// The rows up to those that were left out; all rows, if none were.
    pub first: Vec<Row>,
    /// Number of rows that were left out between the two. If there is one at all, there are at least two.
    pub left_out: usize,
    /// The rows after those that were left out.
    pub last: VecDeque<Row>,
}

impl Told {
    fn add(&mut self, row: Row, ends: Option<Ends>) {
        let newest = self.last.back_mut().or(self.first.last_mut());
        if let (Some(newest), Some(_)) = (newest, row.owners)
            && newest.owners.is_some()
        {
            // Of owners in a row, the last one counts.
            newest.goes_on(row);
            return;
        }
        let Some(ends) = ends.filter(|ends| self.first.len() >= ends.first) else {
            self.first.push(row);
            return;
        };
        self.last.push_back(row);
        // A row in place of one row saves nothing.
        if self.last.len() > ends.last + 1 {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    /// Joins the two ends if nothing was left out between them.
    fn ends(&mut self, ends: Ends) {
        if self.left_out == 0 {
            self.first.extend(self.last.drain(..));
        } else if self.last.len() > ends.last {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    /// Keeps only the first rows, and of them those up to a line.
    pub(crate) fn begins(&mut self, upto: Option<Line>) {
        self.left_out = 0;
        self.last.clear();
        self.first
            .retain(|row| upto.is_none_or(|upto| row.line <= upto));
    }

    /// Returns the rows that are told, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.first.iter().chain(&self.last)
    }
}

impl<'a> Subject<'a> {
    fn erased_at(&self) -> Option<Time> {
        let at = self.seen.expires_at();
        // A message in the inbox continues it.
        at.filter(|_| self.seen.inbox.is_empty() && may_expire(&self.seen.info))
    }

    /// Returns the page.
    pub fn page(&self) -> Page {
        let effects = self.effects();
        let mut page = self.brief(&effects);
        self.fill(&mut page, &effects);
        page
    }

    /// Adds to a page in brief what it lacks.
    pub(crate) fn fill(&self, page: &mut Page, effects: &Effects) {
        let snapshot = self.snapshot();
        for agent in &mut page.agents {
            let stack = self.log.stack(&snapshot, agent.id);
            let ordered = in_call_order(&stack, |interaction| interaction);
            let texts = ordered
                .into_iter()
                .map(|(interaction, of)| essential(interaction, of, &self.log.texts));
            agent.stack = texts.collect();
        }
        page.effects = effects.all().cloned().collect();
    }

    /// Returns the page in brief: without the parts that grow with each line, which a page on a screen does not show.
    pub(crate) fn brief(&self, effects: &Effects) -> Page {
        let ledger = self.paid();
        let snapshot = self.snapshot();
        let settled = self.settled();
        let mut row = SessionRow::from(&self.seen.info);
        self.standing(&settled).clone_into(&mut row.status);
        row.line = self.line.unwrap_or(self.branch.head);
        if self.alone {
            row.outcome = self.seen.outcome_on(self.branch);
        }
        row.model_calls = ledger.calls;
        row.tokens = ledger.spent.tokens;
        row.cost = ledger.spent.micros as f64 / 1e6;
        let orders = orders(self.seen);
        let agents = self.agents(&snapshot);
        // The first cause is that of the session as it stands now.
        let is_current = settled == self.seen.settled;
        Page {
            row,
            settled: Standing {
                reason: is_current.then(|| Reason::of(self.seen)).flatten(),
                ..Standing::of(&settled)
            },
            models: self.models(),
            micros: ledger.spent.micros,
            unbelievable: ledger.unbelievable,
            lost: Lost {
                tokens: ledger.lost.tokens,
                cost: ledger.lost.micros as f64 / 1e6,
            },
            branch: name(self.branch),
            current: self.seen.current_branch().map(name),
            legend: legend(&agents),
            agents,
            state: state(&snapshot),
            branches: self.branches(),
            sums: Effects::sums(effects.all()),
            effects: Vec::new(),
            rated: rated(&snapshot),
            holds: self
                .pending()
                .map(|pending| PendingRow::of(self.log, self.seen, pending))
                .collect(),
            orders: orders.collect(),
            erased_at: self.erased_at(),
            inbox: self.seen.inbox.len(),
            unread: self.seen.unread.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the rows of the story by branch: those that the page shows, all or the ends of each. A branch that began has an entry,
    /// even without rows.
    pub fn story(&self, ends: Option<Ends>) -> BTreeMap<Id, Told> {
        let way = self.way();
        let mut story = Story::default();
        story.tells_all_of(way.iter().flat_map(BTreeMap::keys).copied());
        let mut by_branch: BTreeMap<Id, Told> = BTreeMap::new();
        for line in &self.log.lines {
            if self.line.is_some_and(|at| line.n > at) {
                break;
            }
            if let Some(network) = self.bound.get(&line.n) {
                story.bound(network.clone());
            }
            for row in story.tell(line, &self.log.texts) {
                if !self.shows(way.as_ref(), row.branch, line.n) {
                    continue;
                }
                let told = by_branch.entry(row.branch).or_default();
                // The branch's row says this already.
                if row.tone != Tone::Begins {
                    told.add(row, ends);
                }
            }
        }
        if let Some(ends) = ends {
            for told in by_branch.values_mut() {
                told.ends(ends);
            }
        }
        by_branch
    }

    /// Returns the time of the last commit that the page shows.
    pub fn made(&self) -> Option<Time> {
        let commits = self.lines().filter(|line| line.commit.is_some());
        commits.last().map(|line| line.at)
    }

    /// Returns true if the cost of every call is known.
    pub fn knows_cost(&self) -> bool {
        let commits = self.lines().filter_map(|line| line.commit.as_ref());
        let mut used = commits.flat_map(|commit| &commit.usage);
        self.all_are_priced() || used.all(|u| u.micros.is_some())
    }

    /// Returns true if the price of every model is known.
    pub(crate) fn all_are_priced(&self) -> bool {
        let mut models = self.seen.values.models.iter();
        models.all(|model| model.price().is_some())
    }

    /// Returns how the branch or session settled.
    pub fn settled(&self) -> Settled {
        if self.alone {
            self.seen.settled_on(self.branch)
        } else {
            self.seen.settled.clone()
        }
    }

    /// Returns everything that waits, for a page of the present.
    pub fn pending(&self) -> impl Iterator<Item = &'a Pending> + use<'a> {
        let (alone, branch, present) = (self.alone, self.branch.id, self.line.is_none());
        let all = self.seen.pending.iter();
        all.filter(move |p| present && (!alone || p.branch == branch))
    }

    /// Returns the status. While the session is at work, or was when its process died, an earlier result is not shown.
    fn standing<'s>(&'s self, settled: &'s Settled) -> &'s str {
        match status(&self.seen.info) {
            at_work @ ("running" | "interrupted") => at_work,
            _ => settled.word(),
        }
    }

    /// If the page is of one branch, returns the branches on the path to it, each with its last line on the path.
    fn way(&self) -> Option<BTreeMap<Id, Line>> {
        self.alone.then(|| way(self.branch, self.seen))
    }

    /// Returns true if the page shows the line: it is not after the line of the page, and it is on the path to the branch.
    fn shows(&self, way: Option<&BTreeMap<Id, Line>>, branch: Id, line: Line) -> bool {
        let on_way = |way: &BTreeMap<Id, Line>| way.get(&branch).is_some_and(|upto| line <= *upto);
        self.line.is_none_or(|at| line <= at) && way.is_none_or(on_way)
    }

    /// Returns the lines that the page shows.
    fn lines(&self) -> impl Iterator<Item = &'a Arc<LogLine>> {
        let way = self.way();
        let lines = self.log.lines.iter();
        lines.filter(move |line| self.shows(way.as_ref(), line.branch, line.n))
    }

    /// Returns the ledger of the lines that the page shows: what was paid in them.
    fn paid(&self) -> Cow<'a, Ledger> {
        if self.line.is_none() && !self.alone {
            return Cow::Borrowed(&self.seen.ledger);
        }
        let mut ledger = Ledger::default();
        for line in self.lines() {
            // The hash of the line is not used here.
            ledger.fold(line, &[0; 32]);
        }
        Cow::Owned(ledger)
    }

    /// Returns the state of the branch at the line of the page.
    pub fn snapshot(&self) -> Snapshot {
        let Some(line) = self.line else {
            return self.branch.snapshot.clone();
        };
        let mut snapshot = self.log.snapshot(line);
        self.known.mask_snapshot(&mut snapshot);
        snapshot
    }

    fn models(&self) -> Vec<ModelRow> {
        let mut models: BTreeMap<&str, ModelRow> = BTreeMap::new();
        let commits = self.lines().filter_map(|line| line.commit.as_ref());
        for usage in commits.flat_map(|commit| &commit.usage) {
            let model = usage.model.as_deref().unwrap_or("unknown");
            let row = models.entry(model).or_insert_with(|| ModelRow {
                model: model.to_owned(),
                calls: 0,
                tokens: 0,
                cost: 0.0,
                micros: 0,
            });
            row.calls += 1;
            row.tokens = row.tokens.saturating_add(usage.tokens());
            row.micros = row.micros.saturating_add(usage.micros.unwrap_or(0));
            row.cost = row.micros as f64 / 1e6;
        }
        models.into_values().collect()
    }

    /// Returns the effects of the lines that the page shows.
    pub(crate) fn effects(&self) -> Effects {
        let way = self.way();
        let lines = self.log.lines.iter();
        let lines = lines.filter(|line| self.line.is_none_or(|at| line.n <= at));
        let shows = |branch, line| self.shows(way.as_ref(), branch, line);
        let only = way.as_ref().map(|_| &shows as &dyn Fn(Id, Line) -> bool);
        let mut effects = Effects::of(lines, &self.log.texts, only);
        if self.line.is_none() {
            effects.driven(self.seen.info.owner.is_some());
        }
        for held in self.pending().filter(|p| p.kind == PendingKind::Hold) {
            effects.held(held.effect);
        }
        effects.under(self.seen.network.as_deref());
        effects
    }

    fn agents(&self, snapshot: &Snapshot) -> Vec<AgentRow> {
        let mut agents: Vec<&Arc<Agent>> = snapshot.agents.values().collect();
        agents.sort_by(|a, b| a.family.path.cmp(&b.family.path));
        let rows = agents.into_iter().map(|agent| {
            let stack = self.log.stack(snapshot, agent.id);
            AgentRow {
                id: agent.id,
                name: agent.def.clone(),
                path: path(snapshot, agent.id),
                phase: format!("{:?}", agent.phase).to_ascii_lowercase(),
                floor: floor_below(snapshot, agent),
                net_state: agent.turn.state.clone(),
                letters: trace::letters(stack.iter().copied()),
                stack: Vec::new(),
                height: agent.stack.height,
                model_calls: agent.counters.model_calls_all,
            }
        });
        rows.collect()
    }

    fn branches(&self) -> Vec<BranchRow> {
        let (joined, mut begun, way) = (joined(self.log), begun(self.log), self.way());
        let rows = self.seen.branches.iter().map(|branch| {
            let known = self.seen.ledger.branch(branch.id);
            let (rewound, by) = begun.remove(&branch.id).unwrap_or_default();
            BranchRow {
                id: branch.id,
                label: branch.label.clone(),
                from: branch.from.map(|(branch, line)| From { branch, line }),
                head: branch.head,
                dry: branch.snapshot.dry,
                ended: branch.ended,
                superseded: branch.superseded,
                left_after: known
                    .and_then(|known| known.superseded)
                    .filter(|_| branch.superseded),
                cancelled: is_cancelled(branch),
                rewound,
                by,
                joined: joined.get(&branch.id).copied(),
                adopted: known.and_then(|known| Some(known.adopted?.upto)),
                of_agent: branch.snapshot.scope.is_some(),
                upto: way.as_ref().and_then(|way| way.get(&branch.id).copied()),
            }
        });
        rows.collect()
    }
}

impl Standing {
    fn of(settled: &Settled) -> Self {
        match settled {
            Settled::Answered { before, text, .. } => Self {
                before: before.clone(),
                answer: Some(text.clone()),
                ..Self::default()
            },
            Settled::Limit { code, text } => Self {
                code: Some((&**code).into()),
                answer: text.as_deref().map(Into::into),
                ..Self::default()
            },
            Settled::Failed { code, message } => Self {
                code: Some((&**code).into()),
                message: Some((&**message).into()),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

fn name(branch: &BranchView) -> String {
    branch
        .label
        .as_ref()
        .map_or_else(|| branch.id.to_string(), ToString::to_string)
}

/// Returns the letters in the stacks of agents, each with its meaning.
fn legend(agents: &[AgentRow]) -> BTreeMap<String, Word> {
    let letters = agents.iter().flat_map(|agent| agent.letters.split(' '));
    let known =
        letters.filter_map(|letter| Some((letter.to_owned(), Word::from(words::letter(letter)?))));
    known.collect()
}

/// Returns the standing orders of people: `paused`, `refund is held`.
fn orders(seen: &Inspection) -> impl Iterator<Item = String> {
    let paused = seen.ledger.paused.then(|| "paused".to_owned());
    let held = seen.ledger.barred().map(|tool| {
        let tool = tool.map_or("all that changes the world", |tool| tool);
        format!("{tool} is held")
    });
    paused.into_iter().chain(held)
}

/// Returns the state by name. Entries of agents below the root are prefixed with the agent's path; a sealed value is `(sealed)`.
pub fn state(snapshot: &Snapshot) -> Map<String, Json> {
    let value = |cell: &Cell| {
        if cell.value.is_sealed() {
            "(sealed)".into()
        } else {
            (*cell.value.0).clone()
        }
    };
    let cells = cells(snapshot).into_iter();
    cells.map(|(name, cell)| (name, value(cell))).collect()
}

/// Returns the line that wrote each entry of the state, by the names of [`state`].
pub fn written(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let cells = cells(snapshot).into_iter();
    cells.map(|(name, cell)| (name, cell.line.0)).collect()
}

fn cells(snapshot: &Snapshot) -> BTreeMap<String, &Cell> {
    let cells = snapshot.state.iter();
    let cells = cells.filter(|((_, name), _)| !is_rating(name));
    let named = cells.map(|((scope, name), cell)| {
        let name = if Some(*scope) == snapshot.root {
            name.to_string()
        } else {
            format!("{}.{name}", path(snapshot, *scope))
        };
        (name, cell)
    });
    named.collect()
}

fn rated(snapshot: &Snapshot) -> Vec<Rated> {
    let seen = artifact::seen(snapshot, None).into_iter();
    let rated = seen.filter_map(|seen| {
        let rating = rating::of(snapshot, seen.versions.last()?)?;
        Some(Rated {
            name: seen.name,
            rating: rating.rating,
            by: rating.by,
        })
    });
    rated.collect()
}

/// Returns the branches on the path to this one, itself included, each with its last line on the path.
fn way(branch: &BranchView, inspection: &Inspection) -> BTreeMap<Id, Line> {
    let mut way = BTreeMap::new();
    let (mut at, mut upto) = (Some(branch), branch.head);
    while let Some(branch) = at {
        way.insert(branch.id, upto);
        let from = branch.from;
        at = from.and_then(|(id, _)| inspection.branches.iter().find(|b| b.id == id));
        upto = from.map_or(Line::NONE, |(_, line)| line);
    }
    way
}

/// Returns the branches whose result a call has received, each with the last line of such a receipt.
fn joined(log: &Log) -> BTreeMap<Id, Line> {
    let mut joined = BTreeMap::new();
    for line in &log.lines {
        let commit = line.commit.iter();
        for admitted in commit.flat_map(|commit| &commit.admitted) {
            if let (Admitted::Ended, Some(branch)) = (admitted.kind, admitted.id) {
                joined.insert(branch, line.n);
            }
        }
    }
    joined
}

/// Returns true if a person cancelled the branch, or the agent that forked it no longer waits for it.
fn is_cancelled(branch: &BranchView) -> bool {
    let top = branch.snapshot.top().map(|top| branch.snapshot.agent(top));
    let rests = top.filter(|top| top.phase == Phase::Resting);
    match rests {
        Some(top) => top
            .turn
            .ended
            .is_some_and(|(_, cause)| cause == Cause::Cancelled),
        None => branch.superseded && branch.snapshot.scope.is_some(),
    }
}

/// Returns the agent that has the floor below an agent that waits only for the next words of a person.
fn floor_below(snapshot: &Snapshot, agent: &Agent) -> Option<Name> {
    let rests = agent.phase == Phase::Calling && snapshot.rests(agent.id);
    let mut calls = snapshot.exchange(agent.id).filter(|_| rests);
    let member = calls.find_map(|open| snapshot.rests_in(open))?;
    floor_below(snapshot, member).or_else(|| Some(member.def.clone()))
}

/// Returns how the branches began: true for a rewind, and the person whose message it was.
fn begun(log: &Log) -> BTreeMap<Id, (bool, Option<Name>)> {
    let begun = log.lines.iter().filter_map(|line| {
        let commit = line.commit.as_ref()?;
        let opening = |kind| matches!(kind, Admitted::Opened | Admitted::Rewound);
        let opened = commit.admitted.iter().find(|a| opening(a.kind))?;
        let by = line.ledger.iter().find_map(|entry| match entry {
            LedgerEntry::Accepted { by, .. } => by.as_ref()?.shown(),
            _ => None,
        });
        let by = by.map(|by| by.to_string().into());
        Some((line.branch, (opened.kind == Admitted::Rewound, by)))
    });
    begun.collect()
}
