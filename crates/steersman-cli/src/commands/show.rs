//! `show`: a session on one page: the story of its branches, its state, effects and agents, and what it waits for.

mod facts;

use crate::asked;
use crate::cli::{Global, Look};
use crate::commands::branching::not_adoptable;
use crate::commands::sessions;
use crate::deeds::Deeds;
use crate::error::{CommandError, Exit};
use crate::log::Log;
use crate::place::{Place, Sight, branch_name};
use crate::play;
use crate::printer::{Printer, bold, dim, green, red, typed, yellow};
use crate::story::{Row, Story, Tone};
use crate::words::{ago, count, digits, money};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::runtime::branches::path;
use steersman::runtime::engine::{BranchView, Inspection};
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::session::Settled;
use steersman_machine::commit::Admitted;
use steersman_machine::ids::{Id, Line};
use steersman_machine::interaction::Cause;
use steersman_machine::network::Network;
use steersman_machine::snapshot::{Agent, Phase, Snapshot};
use steersman_machine::trace;

pub(crate) const LISTED: &str = "Show a session: its branches, state, effects and agents";

/// Show a session: its branches, state, effects and agents.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    look: Look,
}

/// Number of rows that are shown from the beginning and the end of a branch; rows between are only counted.
const HEAD: usize = 20;
const TAIL: usize = 60;

pub(crate) async fn run(
    args: ShowArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let seen = Seen::of(&place, &args.look.address).await?;
    let page = seen.page(&place);
    if printer.is_json() {
        let mut document = page.document();
        seen.sight.log.known.mask(&mut document);
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    for row in page.rows() {
        printer.data(seen.sight.log.known.masked(&row))?;
    }
    page.next(printer);
    Ok(Exit::Answered)
}

/// Returns a session as one document.
pub(crate) async fn document(place: &Place, address: &str) -> Result<Json, CommandError> {
    let seen = Seen::of(place, address).await?;
    let mut document = seen.page(place).document();
    seen.sight.log.known.mask(&mut document);
    Ok(document)
}

/// The data of a page.
struct Seen {
    sight: Sight,
    line: Option<Line>,
    settled: Settled,
    bound: BTreeMap<Line, Arc<Network>>,
}

impl Seen {
    async fn of(place: &Place, address: &str) -> Result<Self, CommandError> {
        let mut sight = place.look(address).await?;
        let line = sight.line()?;
        sight.inspection = sight.inspection.veiled(&sight.log.known);
        let settled = match sight.named() {
            Some(branch) => sight.inspection.settled_on(branch),
            None => sight.inspection.settled.clone(),
        };
        Ok(Self {
            bound: sight.log.bound(place, &sight.inspection.info.id).await,
            sight,
            line,
            settled,
        })
    }

    fn page<'a>(&'a self, place: &'a Place) -> Page<'a> {
        let (sight, branch) = (&self.sight, self.sight.branch());
        let at_line = |line: Line| {
            let mut snapshot = sight.log.snapshot(line);
            sight.log.known.veil(&mut snapshot);
            snapshot
        };
        Page {
            place,
            inspection: &sight.inspection,
            log: &sight.log,
            branch,
            way: sight.named().map(|named| way(named, &sight.inspection)),
            settled: &self.settled,
            bound: &self.bound,
            short: &sight.short,
            name: sight.name(),
            snapshot: self.line.map_or_else(|| branch.snapshot.clone(), at_line),
            line: self.line,
            rewound: rewound(&sight.log),
            joined: joined(&sight.log),
        }
    }
}

/// Returns the branches on the way to this one, each with the last line that belongs to the way.
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

/// Returns the branches whose end a call received, with the line of the last of these.
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
            .ended
            .is_some_and(|(_, cause)| cause == Cause::Cancelled),
        None => branch.superseded && branch.snapshot.scope.is_some(),
    }
}

fn rewound(log: &Log) -> BTreeSet<Id> {
    let commits = log.lines.iter();
    let commits = commits.filter_map(|line| Some((line.branch, line.commit.as_ref()?)));
    let rewound = commits.filter(|(_, commit)| {
        let mut admitted = commit.admitted.iter();
        admitted.any(|a| a.kind == Admitted::Rewound)
    });
    rewound.map(|(branch, _)| branch).collect()
}

struct Page<'a> {
    place: &'a Place,
    inspection: &'a Inspection,
    log: &'a Log,
    branch: &'a BranchView,
    /// If the address names a branch, the branches on the way to it, each with its last line.
    way: Option<BTreeMap<Id, Line>>,
    /// The status of the branch.
    settled: &'a Settled,
    /// The definitions that it was bound to, by the line of the binding.
    bound: &'a BTreeMap<Line, Arc<Network>>,
    short: &'a str,
    /// The session as people type it, with the branch if one was named.
    name: String,
    /// The snapshot at the line of the address, else at the head of the branch.
    snapshot: Snapshot,
    line: Option<Line>,
    /// Branches that began with a rewind.
    rewound: BTreeSet<Id>,
    /// The branches whose end a call received, with the line.
    joined: BTreeMap<Id, Line>,
}

/// The usage of one model.
#[derive(Default)]
struct By {
    calls: u64,
    tokens: u64,
    micros: u64,
}

impl Page<'_> {
    /// Returns the status. While the session is at work, or was when its process died, an earlier result is not shown.
    fn standing(&self) -> &str {
        match sessions::status(&self.inspection.info) {
            at_work @ ("running" | "interrupted") => at_work,
            _ => self.settled.word(),
        }
    }

    /// Returns true if the page shows the line: it is not after the line of the address, and on the way to the named
    /// branch.
    fn shows(&self, branch: Id, line: Line) -> bool {
        let on_way = |way: &BTreeMap<Id, Line>| way.get(&branch).is_some_and(|upto| line <= *upto);
        self.line.is_none_or(|at| line <= at) && self.way.as_ref().is_none_or(on_way)
    }

    /// Returns what waits, for a page of the present state.
    fn pending(&self) -> Vec<&Pending> {
        let all = self.inspection.pending.iter();
        let here = all.filter(|p| self.way.is_none() || p.branch == self.branch.id);
        here.filter(|_| self.line.is_none()).collect()
    }

    /// Returns the usage by the model that answered, which may be a fallback.
    fn answered(&self) -> BTreeMap<&str, By> {
        let mut answered: BTreeMap<&str, By> = BTreeMap::new();
        let lines = self.log.lines.iter();
        let lines = lines.filter(|line| self.line.is_none_or(|at| line.n <= at));
        let commits = lines.filter_map(|line| line.commit.as_ref());
        for usage in commits.flat_map(|commit| &commit.usage) {
            let by = answered.entry(usage.model.as_deref().unwrap_or("unknown"));
            let by = by.or_default();
            by.calls += 1;
            by.tokens = by.tokens.saturating_add(usage.tokens());
            by.micros = by.micros.saturating_add(usage.micros.unwrap_or(0));
        }
        answered
    }

    /// Returns the cost, as far as it is known.
    fn cost(&self) -> String {
        let spent = self.inspection.ledger.spent.micros;
        let models = &self.inspection.values.models;
        let used = self
            .log
            .lines
            .iter()
            .filter_map(|line| line.commit.as_ref());
        let mut used = used.flat_map(|commit| &commit.usage);
        if models.iter().all(|model| model.price().is_some()) || used.all(|u| u.micros.is_some()) {
            return money(spent);
        }
        match spent {
            0 => "cost unknown".to_owned(),
            spent => format!("{} and more: the price of a model is unknown", money(spent)),
        }
    }

    fn rows(&self) -> Vec<String> {
        let info = &self.inspection.info;
        if let Some(line) = self.line {
            return self.rows_at(line);
        }
        // The lists are updated when a session comes to rest, but the log also covers a session that was cut off.
        let ledger = &self.inspection.ledger;
        let now = self.place.now();
        let digest = match &*info.state.definition {
            "" => String::new(),
            digest => format!(" {digest}"),
        };
        let mut rows = vec![format!(
            "{}   {}{digest}   {} {}   {}, {} tokens, {}",
            bold(self.short),
            info.network,
            status(self.standing()),
            ago(now, info.state.updated.0),
            count(ledger.calls, "model call"),
            digits(ledger.spent.tokens),
            self.cost(),
        )];
        if ledger.lost.tokens > 0 {
            rows.push(dim(&format!(
                "{} of these tokens went into answers that nobody got: calls that were cut or broke off, and what a process that \
                 died had set aside, spent or not",
                digits(ledger.lost.tokens)
            )));
        }
        if ledger.unbelievable > 0 {
            rows.push(dim(&format!(
                "{}: what the provider told of its tokens cannot be, and the most that it could take counts",
                count(ledger.unbelievable, "call")
            )));
        }
        let answered = self.answered();
        if answered.len() > 1 {
            let each = answered.iter().map(|(model, by)| {
                format!("{model} {} {}", count(by.calls, "call"), money(by.micros))
            });
            rows.push(dim(&format!(
                "answered by {}",
                each.collect::<Vec<_>>().join(", ")
            )));
        }
        if let Some(owner) = &info.owner {
            rows.push(format!("process {owner} drives it now"));
        }
        rows.push(String::new());
        rows.extend(self.tree());
        rows.push(String::new());
        rows.extend(self.facts());
        for pending in self.pending() {
            rows.extend(asked::frame(pending, now));
        }
        rows
    }

    /// Renders the page of a line, without anything that came after it.
    fn rows_at(&self, at: Line) -> Vec<String> {
        let answered = self.answered();
        let calls = answered.values().map(|by| by.calls).sum();
        let tokens = answered.values().map(|by| by.tokens);
        let tokens = tokens.fold(0, u64::saturating_add);
        let lines = self.log.lines.iter().filter(|line| line.n <= at);
        let made = lines.filter_map(|line| line.commit.as_ref()).next_back();
        let made = made.map_or_else(String::new, |commit| {
            format!("   {}", ago(self.place.now(), commit.now.0))
        });
        let mut rows = vec![format!(
            "{}   {}{made}   then {}, {} tokens",
            bold(&format!("{}@{at}", self.name)),
            self.inspection.info.network,
            count(calls, "model call"),
            digits(tokens),
        )];
        rows.push(String::new());
        rows.extend(self.tree());
        rows.push(String::new());
        rows.extend(self.facts());
        rows
    }

    /// Draws the branches, each under the line where it was forked.
    fn tree(&self) -> Vec<String> {
        let mut story = Story::default();
        story.tells_all_of(self.way.iter().flat_map(BTreeMap::keys).copied());
        let mut told: BTreeMap<Id, Vec<Row>> = BTreeMap::new();
        for line in &self.log.lines {
            if self.line.is_some_and(|at| line.n > at) {
                break;
            }
            if let Some(network) = self.bound.get(&line.n) {
                story.bound(network.clone());
            }
            for row in story.tell(line, &self.log.texts) {
                if !self.shows(row.branch, line.n) {
                    continue;
                }
                // The branch's title says this already.
                if row.tone == Tone::Begins {
                    told.entry(row.branch).or_default();
                    continue;
                }
                told.entry(row.branch).or_default().push(row);
            }
        }
        let mut rows = Vec::new();
        for branch in self.inspection.branches.iter().filter(|b| b.from.is_none()) {
            self.branch(branch, &told, "", &mut rows);
        }
        rows
    }

    fn branch(
        &self,
        branch: &BranchView,
        told: &BTreeMap<Id, Vec<Row>>,
        margin: &str,
        rows: &mut Vec<String>,
    ) {
        let mut title = bold(&branch_name(branch));
        let mut marks = Vec::new();
        if let Some((_, at)) = branch.from {
            let rewound = self.rewound.contains(&branch.id);
            let word = if rewound { "rewound to" } else { "forked at" };
            marks.push(format!("{word} @{at}"));
        }
        if branch.snapshot.dry {
            marks.push("dry".into());
        }
        let known = self.inspection.ledger.branch(branch.id);
        if let Some(at) = known.and_then(|known| Some(known.adopted?.upto)) {
            marks.push(format!("adopted up to @{at}"));
        }
        if let Some(at) = self.joined.get(&branch.id) {
            marks.push(format!("joined at @{at}"));
        }
        let cancelled = is_cancelled(branch);
        match known.and_then(|known| known.superseded) {
            Some(after) if branch.superseded && cancelled => {
                marks.push(format!("cancelled after @{after}"));
            }
            Some(after) if branch.superseded => marks.push(format!("left behind after @{after}")),
            _ if cancelled => marks.push("cancelled".into()),
            _ if !branch.ended && branch.from.is_some() => marks.push("open".into()),
            _ => {}
        }
        if let Some(upto) = self.way.as_ref().and_then(|way| way.get(&branch.id))
            && branch.id != self.branch.id
        {
            marks.push(format!("up to @{upto}"));
        }
        if branch.id == self.inspection.current && self.inspection.branches.len() > 1 {
            marks.push("current".into());
        }
        if !marks.is_empty() {
            title = format!("{title}   {}", dim(&marks.join(", ")));
        }
        rows.push(format!("{margin}{title}"));
        let empty = Vec::new();
        let own = told.get(&branch.id).unwrap_or(&empty);
        let mut children: Vec<&BranchView> = self
            .inspection
            .branches
            .iter()
            .filter(|b| told.contains_key(&b.id))
            .filter(|b| self.above(b, told) == Some(branch.id))
            .collect();
        children.sort_by_key(|b| b.from.map(|(_, at)| at));
        let mut children = children.into_iter().peekable();
        let (head, tail) = if own.len() > HEAD + TAIL + 1 {
            (HEAD, own.len() - TAIL)
        } else {
            (own.len(), own.len())
        };
        for (i, row) in own.iter().enumerate() {
            while let Some(child) =
                children.next_if(|c| c.from.is_some_and(|(_, at)| at < row.line))
            {
                rows.push(format!("{margin}  |\\"));
                self.branch(child, told, &format!("{margin}  | "), rows);
                rows.push(format!("{margin}  |"));
            }
            if i == head && tail > head {
                rows.push(dim(&format!(
                    "{margin}  ... {} rows more: steersman log {}",
                    digits((tail - head) as u64),
                    self.short
                )));
            }
            if i < head || i >= tail {
                rows.extend(row.print(true).into_iter().map(|r| format!("{margin}{r}")));
            }
        }
        for child in children {
            rows.push(format!("{margin}  |\\"));
            self.branch(child, told, &format!("{margin}  | "), rows);
        }
    }

    /// Returns the branch under which another is drawn: the one that it left, or the nearest ancestor with rows.
    fn above(&self, branch: &BranchView, told: &BTreeMap<Id, Vec<Row>>) -> Option<Id> {
        let all = &self.inspection.branches;
        let mut above = branch.from?.0;
        while !told.contains_key(&above) {
            let Some(next) = all.iter().find(|b| b.id == above)?.from else {
                break;
            };
            above = next.0;
        }
        Some(above)
    }

    fn deeds(&self) -> Deeds {
        let lines = self.log.lines.iter();
        let lines = lines.filter(|line| self.line.is_none_or(|at| line.n <= at));
        let shows = |branch, line| self.shows(branch, line);
        let way = self
            .way
            .as_ref()
            .map(|_| &shows as &dyn Fn(Id, Line) -> bool);
        let mut deeds = Deeds::of(lines, &self.log.texts, way);
        if self.line.is_none() {
            deeds.driven(self.inspection.info.owner.is_some());
        }
        let pending = self.pending().into_iter();
        for held in pending.filter(|p| p.kind == PendingKind::Hold) {
            deeds.held(held.effect);
        }
        deeds
    }

    /// Returns the `outcome:` of the named branch, else that of the session.
    fn outcome(&self) -> Arc<str> {
        match &self.way {
            Some(_) => self.inspection.outcome_on(self.branch).to_string().into(),
            None => self.inspection.info.state.outcome.clone(),
        }
    }

    fn letters(&self, agent: &Agent) -> String {
        let view = BranchView {
            snapshot: self.snapshot.clone(),
            ..self.branch.clone()
        };
        let stack = self.inspection.stack(&view, agent.id);
        trace::letters(stack.iter().map(|(_, interaction)| interaction))
    }

    /// Returns the interactions on an agent's stack as text. Results are in the order of their calls, so that equal
    /// sessions show equal stacks whichever call ended first.
    fn stack(&self, agent: &Agent) -> Vec<String> {
        let view = BranchView {
            snapshot: self.snapshot.clone(),
            ..self.branch.clone()
        };
        let stack = self.inspection.stack(&view, agent.id);
        steersman::testing::in_call_order(&stack, |(_, interaction)| interaction)
            .into_iter()
            .map(|(_, interaction)| steersman::testing::essential(interaction, &self.log.texts))
            .collect()
    }

    fn next(&self, printer: &Printer) {
        let (short, name) = (self.short, &self.name);
        if let Some(line) = self.line {
            printer.talk("");
            for (command, why) in [
                (
                    format!("steersman context {name}@{line}"),
                    "what the model saw there",
                ),
                (
                    format!("steersman log {name}@{line}"),
                    "each line from there on",
                ),
            ] {
                printer.talk(format!("{}   {}", typed(&command), dim(why)));
            }
            return;
        }
        let mut rows: Vec<(String, &str)> = Vec::new();
        for waits in self.pending() {
            let commands = asked::commands(short, waits).into_iter();
            rows.extend(commands.map(|c| (c, "")));
        }
        if self.standing() == "interrupted" {
            rows.push((
                format!("steersman run --resume {short}"),
                "goes on where it stopped",
            ));
        }
        let called = self.deeds().all().last().map(|d| d.tool.to_string());
        rows.push(match called {
            Some(tool) => (
                format!("steersman context {name}@{tool}"),
                "what the model saw before it called that",
            ),
            None => (format!("steersman context {name}"), "what the model saw"),
        });
        rows.push((format!("steersman log {name}"), "each line with its ledger"));
        printer.talk("");
        for branch in self.inspection.branches.iter().filter(|b| !b.superseded) {
            if branch.id == self.inspection.current || branch.snapshot.scope.is_some() {
                continue;
            }
            if self.way.is_some() && branch.id != self.branch.id {
                continue;
            }
            let name = branch_name(branch);
            let known = self.inspection.ledger.branch(branch.id);
            if known.is_some_and(|known| known.adopted.is_some()) {
                continue;
            }
            let refused = not_adoptable(self.inspection, branch.id).and_then(|_| {
                let ledger = &self.inspection.ledger;
                let forked = ledger.common(branch.id, self.inspection.current)?;
                Some(format!(
                    "would be refused: the current branch went on since @{forked}"
                ))
            });
            let why = refused.unwrap_or_else(|| "goes on with what it came to".to_owned());
            printer.talk(format!(
                "{}   {}",
                typed(&format!("steersman adopt {short}:{name}")),
                dim(&why)
            ));
        }
        for (command, why) in rows {
            // Styling an empty text would add invisible characters to a line that people copy.
            printer.talk(match why {
                "" => typed(&command),
                why => format!("{}   {}", typed(&command), dim(why)),
            });
        }
    }

    fn document(&self) -> Json {
        let info = &self.inspection.info;
        let line = self.line.unwrap_or(self.branch.head);
        let mut document = sessions::document(info);
        let status = play::document(&info.id, line, self.settled);
        for key in ["before", "answer", "code", "message", "line"] {
            if let Some(value) = status.get(key) {
                document[key] = value.clone();
            }
        }
        let ledger = &self.inspection.ledger;
        document["status"] = self.standing().into();
        if self.way.is_some() {
            document["outcome"] = serde_json::from_str(&self.outcome()).unwrap_or_default();
        }
        document["model_calls"] = ledger.calls.into();
        document["tokens"] = ledger.spent.tokens.into();
        document["cost"] = (ledger.spent.micros as f64 / 1e6).into();
        let answered = self.answered();
        let each = answered.iter().map(|(model, by)| {
            json!({
                "model": model,
                "calls": by.calls,
                "tokens": by.tokens,
                "cost": by.micros as f64 / 1e6,
            })
        });
        document["models"] = each.collect();
        document["unbelievable"] = ledger.unbelievable.into();
        document["lost"] = json!({
            "tokens": ledger.lost.tokens,
            "cost": ledger.lost.micros as f64 / 1e6,
        });
        document["branch"] = branch_name(self.branch).into();
        document["current"] = self
            .inspection
            .current_branch()
            .map_or(Json::Null, |b| branch_name(b).into());
        document["agents"] = self.agents_document();
        document["state"] = Json::Object(
            self.state()
                .into_iter()
                .map(|(name, value)| {
                    let value = serde_json::from_str(&value).unwrap_or(Json::String(value));
                    (name, value)
                })
                .collect::<Map<_, _>>(),
        );
        document["branches"] = self
            .inspection
            .branches
            .iter()
            .map(|b| {
                json!({
                    "id": b.id.to_string(),
                    "label": b.label,
                    "from": b.from.map(|(parent, at)| json!({ "branch": parent.to_string(), "line": at.0 })),
                    "head": b.head.0,
                    "dry": b.snapshot.dry,
                    "ended": b.ended,
                    "superseded": b.superseded,
                    "cancelled": is_cancelled(b),
                    "joined": self.joined.get(&b.id).map(|line| line.0),
                    "adopted": ledger.branch(b.id).and_then(|known| Some(known.adopted?.upto.0)),
                })
            })
            .collect();
        document["effects"] = self
            .deeds()
            .all()
            .map(|deed| deed.json(self.inspection.network.as_deref()))
            .collect();
        document["holds"] = self.pending().into_iter().map(asked::json).collect();
        document["orders"] = ledger_orders(self.inspection).collect();
        document["inbox"] = self.inspection.inbox.len().into();
        if !self.inspection.unread.is_empty() {
            let unread = self.inspection.unread.iter();
            document["unread"] = unread.map(ToString::to_string).collect();
        }
        document
    }

    fn agents_document(&self) -> Json {
        let mut agents: Vec<_> = self.snapshot.agents.values().collect();
        agents.sort_by(|a, b| a.path.cmp(&b.path));
        agents
            .into_iter()
            .map(|agent| {
                json!({
                    "id": agent.id.to_string(),
                    "name": agent.def,
                    "path": path(&self.snapshot, agent.id),
                    "phase": format!("{:?}", agent.phase).to_ascii_lowercase(),
                    "net_state": agent.state,
                    "letters": self.letters(agent),
                    "stack": self.stack(agent),
                    "height": agent.height,
                    "model_calls": agent.counters.model_calls_all,
                })
            })
            .collect()
    }
}

/// Returns the standing orders of people: `paused`, `refund is held`.
fn ledger_orders(inspection: &Inspection) -> impl Iterator<Item = String> {
    let paused = inspection.ledger.paused.then(|| "paused".to_owned());
    let held = inspection.ledger.barred().map(|tool| {
        let tool = tool.map_or("all that changes the world", |tool| tool);
        format!("{tool} is held")
    });
    paused.into_iter().chain(held)
}

fn status(word: &str) -> String {
    match word {
        "answered" => green(word),
        "failed" | "doubt" => red(word),
        _ => yellow(word),
    }
}
