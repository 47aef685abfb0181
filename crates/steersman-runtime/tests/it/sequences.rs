//! Random sequences of orders, with kills before, during and after them: no order panics or leaves a session that nobody can
//! drive, and no `unsafe` tool runs twice with equal arguments unless a person who was told so approved it.
//!
//! A sequence follows from one number. At its end a new owner drives the session to rest, or to a wait that `pending` lists,
//! whatever was ordered before. Then the store is checked as `fsck` checks it.

use crate::spy::{Behind, Spy};
use crate::world::{Does, World, network};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use steersman_machine::network::join::JoinOn;
use steersman_machine::network::search::{Method, Plan, Scorer};
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Expr;
use steersman_runtime::beside::{Kept, differs};
use steersman_runtime::engine::{Durability, EngineError, Inspection, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::load::Load;
use steersman_runtime::pending::{HELD_ALL, Pending, PendingId, PendingKind};
use steersman_runtime::session::{Fate, Receipt, Session, Settled};
use steersman_runtime::store::SessionQuery;

pub(crate) const DESK: &str = r#"
state: { sum: { type: integer, default: 0, reduce: sum }, mood: { type: string, default: calm } }
tools:
  look: { description: Looks., effect: read, native: 1 }
  note: { description: Notes., effect: idempotent, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, native: 1 }
  pay_asked: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: { when: true, by: user, edit: [cents] }, native: 1 }
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
  feel: { description: Feels., parameters: { mood: string }, set: { mood: "{{ args.mood }}" } }
  nap: { description: Naps., wait: { time: 10m }, result: Rested. }
agents:
  desk:
    system: You lead.
    tools: [look, note, pay, pay_asked, roll, feel, nap, helper, seeker, { tool: fork, as: race, join: any }, { tool: fork, as: sure, choose: critic }]
  helper: { description: Helps., system: You help., tools: [look, pay, roll, fork] }
  seeker: { description: Seeks., system: You seek., tools: [roll, look, pay], search: { method: best_of, n: 2, score: state.sum } }
  critic: { description: Chooses., system: You choose. }
entry: desk
"#;

/// Random numbers of one sequence.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let at = self.below(all.len());
        all.get(at)
    }
}

/// Answers of all agents, drawn at random, for 120 calls of each.
fn script() -> Json {
    let pay = |cents: u32| json!({ "call": { "pay": { "cents": cents } } });
    let roll = |eyes: u32| json!({ "call": { "roll": { "eyes": eyes } } });
    let desk = json!({ "any": [
        "Well.", "Done.", { "call": { "look": {} } }, { "call": { "note": {} } }, pay(1), pay(2), roll(3),
        { "call": { "pay_asked": { "cents": 3 } } }, { "call": { "feel": { "mood": "glad" } } }, { "call": { "nap": {} } },
        { "call": { "helper": { "message": "Help." } } }, { "call": { "seeker": { "message": "Seek." } } },
        { "call": [{ "pay": { "cents": 4 } }, { "helper": { "message": "Help." } }, { "look": {} }] },
        { "call": { "race": { "instructions": ["Be quick.", "Be good."] } } },
        { "call": { "sure": { "instructions": ["Be quick.", "Be good."] } } },
        { "error": "provider_overloaded" },
    ], "weights": [6, 4, 3, 3, 2, 2, 3, 2, 2, 1, 3, 3, 2, 2, 2, 1] });
    let helper = json!({ "any": [
        "Helped.", "Here.", { "call": { "look": {} } }, pay(5), roll(1), { "call": { "fork": { "instructions": ["One.", "Two."] } } },
    ], "weights": [5, 4, 2, 2, 2, 1] });
    let seeker =
        json!({ "any": ["Found.", roll(1), roll(2), roll(6), pay(6), { "call": { "look": {} } }] });
    let list = |any: &Json| vec![any.clone(); 120];
    json!({ "desk": list(&desk), "helper": list(&helper), "seeker": list(&seeker), "critic": vec![json!({ "any": ["1", "2"] }); 120] })
}

/// A sequence that is played.
struct Play {
    draws: Draws,
    world: World,
    session: Session,
    /// The orders so far, for the report of a failure.
    told: String,
    /// Ids of messages for which a receipt came.
    acknowledged: BTreeSet<Name>,
    /// For each act, how often it was ordered, and how often it was taken.
    acts: BTreeMap<&'static str, (u64, u64)>,
    /// The last decision of a person.
    answered: Option<Message>,
    /// Number of times that a person let a call run again knowing of an equal one, by tool and arguments.
    words: BTreeMap<(String, String), usize>,
    kills: u64,
}

/// The reason why a sequence failed.
type Fault = String;

/// Lets all tasks run for this many turns of the runtime.
pub(crate) async fn turns(n: usize) {
    for _ in 0..n {
        tokio::task::yield_now().await;
    }
}

/// Waits this many turns for a future. `None` means that it did not end.
pub(crate) async fn within<T>(n: usize, wanted: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        came = wanted => Some(came),
        () = turns(n) => None,
    }
}

fn broke(error: &EngineError) -> bool {
    match error {
        EngineError::Gone(why) => broke(why),
        EngineError::Stopped => false,
        _ => true,
    }
}

impl Play {
    async fn begin(seed: u64) -> Self {
        let world = World::over(Spy::default(), Durability::Commit, script());
        let network = network(DESK);
        let options = StartOptions {
            id: Some("session".into()),
            say: Some("Go.".to_owned()),
            message_id: Some("m1".into()),
            seed: Some(seed),
            ..StartOptions::default()
        };
        let session = world.engine.start(network, options).await.unwrap();
        Self {
            draws: Draws(seed),
            world,
            session,
            told: String::new(),
            acknowledged: BTreeSet::new(),
            acts: BTreeMap::new(),
            answered: None,
            words: BTreeMap::new(),
            kills: 0,
        }
    }

    async fn seen(&self) -> Result<Inspection, Fault> {
        let seen = self.world.engine.inspect("session").await;
        seen.map_err(|e| format!("it cannot be inspected: {e}"))
    }

    // ---- acts

    /// Draws the next act of a person from what the session shows.
    async fn act(&mut self, seen: &Inspection) -> Result<(&'static str, Message), Fault> {
        let lines = self.world.lines().await;
        let draws = &mut self.draws;
        let ids: Vec<Id> = seen.branches.iter().map(|b| b.id).collect();
        let any = draws.of(&ids).copied().unwrap_or(Id::MAIN);
        let branch = (!draws.one_in(3)).then_some(any);
        let of = branch.unwrap_or(seen.current);
        let on = lines.iter().filter(|l| l.branch == of).map(|l| l.n);
        let line = draws.of(&on.collect::<Vec<_>>()).copied();
        let place = Place { any, branch, line };
        Ok(match draws.below(22) {
            0..3 => speaks(draws, branch),
            3..14 => branches(draws, seen, place),
            14..19 => orders(draws, seen, branch),
            _ => match &self.answered {
                // A person who sends a decision again refers to what they saw then.
                Some(before) if draws.one_in(4) => ("answer again", before.clone()),
                _ => {
                    let decided = decides(draws, seen);
                    self.answered = Some(decided.1.clone());
                    decided
                }
            },
        })
    }

    /// Counts a decision that lets an equal call run, before it is sent: its question told of the other call.
    fn says(&mut self, message: &Message, seen: &Inspection) {
        let of = match &message.wanted {
            Wanted::Approve { of, args: None }
            | Wanted::Resolve {
                of,
                how: Resolution::NotPerformed,
            } => *of,
            _ => return,
        };
        for asked in seen.pending.iter().filter(|p| p.id() == of) {
            let told = asked.text.contains("The same call ");
            let again = matches!(asked.kind, PendingKind::Repeat | PendingKind::Doubt);
            let (Some(tool), Some(args)) = (&asked.tool, &asked.args) else {
                continue;
            };
            if told || again {
                let args: Json = serde_json::from_str(args).unwrap();
                let call = (tool.to_string(), args.to_string());
                *self.words.entry(call).or_default() += 1;
            }
        }
    }

    /// Checks in the record of the tools that no `unsafe` tool ran more often than people approved.
    fn repeats(&self) -> Result<(), Fault> {
        for tool in ["pay", "pay_asked"] {
            let mut ran: BTreeMap<String, usize> = BTreeMap::new();
            for args in self.world.tools.args(tool) {
                *ran.entry(args.to_string()).or_default() += 1;
            }
            for (args, times) in ran {
                let call = (tool.to_owned(), args);
                let said = self.words.get(&call).copied().unwrap_or_default();
                if times > 1 + said {
                    let (tool, args) = call;
                    return Err(format!(
                        "`{tool}` ran {times} times with {args}, and people approved {said} repetitions"
                    ));
                }
            }
        }
        Ok(())
    }

    fn heard(&mut self, act: &'static str, receipt: Option<&Receipt>) {
        let known = self.acts.entry(act).or_default();
        known.0 += 1;
        let Some(receipt) = receipt else {
            self.told.push_str("  no receipt\n");
            return;
        };
        known.1 += u64::from(matches!(receipt.fate, Fate::Taken(_)));
        self.acknowledged.insert(receipt.id.clone());
        writeln!(self.told, "  {:?}", receipt.fate).unwrap();
    }

    /// Performs one act. The test waits for the session to settle, or goes on at once, or the process dies during the act or
    /// after it.
    async fn step(&mut self) -> Result<(), Fault> {
        let seen = self.seen().await?;
        let (act, message) = self.act(&seen).await?;
        self.says(&message, &seen);
        writeln!(self.told, "{act} {message:?}").unwrap();
        let how = self.draws.below(8);
        let inside = self.draws.below(5);
        if how == 0 {
            // The process dies during the act: the store writes this many more batches.
            self.world.store.write_only(inside, Behind::Silence);
        }
        if self.draws.one_in(12) {
            self.world.tools.will("pay", Does::Unknown);
        }
        let receipt = within(3_000, self.session.send(message)).await;
        let receipt = receipt.transpose().map_err(|e| format!("the store: {e}"))?;
        self.heard(act, receipt.as_ref());
        match how {
            0 => {
                turns(300).await;
                writeln!(self.told, "KILL after {inside} batches").unwrap();
                self.kill().await?;
            }
            1 => {
                let few = self.draws.below(40);
                turns(few).await;
                writeln!(self.told, "KILL after {few} turns").unwrap();
                self.kill().await?;
            }
            2 | 3 => {}
            _ => self.rest().await?,
        }
        if self.draws.one_in(10) {
            self.world.clock.advance(11 * 60_000);
        }
        self.repeats()
    }

    /// Waits until the session settles.
    async fn rest(&mut self) -> Result<(), Fault> {
        match within(20_000, self.session.settled()).await {
            Some(Err(error)) if broke(&error) => Err(format!("it broke: {error}")),
            Some(Err(error)) => Err(format!("it ended: {error}")),
            Some(Ok(settled)) => {
                writeln!(self.told, "  {}", settled.word()).unwrap();
                Ok(())
            }
            None => {
                let outside = within(10, self.session.outside()).await;
                Err(format!("it does not settle: {outside:?}"))
            }
        }
    }

    async fn kill(&mut self) -> Result<(), Fault> {
        if let Some(Err(error)) = within(1, self.session.settled()).await
            && broke(&error)
        {
            return Err(format!("it broke: {error}"));
        }
        self.kills += 1;
        let killed = within(20_000, self.world.engine.kill()).await;
        killed.ok_or("the killed engine does not end")?;
        self.world.store.mend();
        self.world = self.world.again();
        let opened = within(20_000, self.world.engine.open("session")).await;
        let opened = opened.ok_or("it does not open")?;
        self.session = opened.map_err(|e| format!("it cannot be opened: {e}"))?;
        Ok(())
    }

    // ---- the end

    /// Drives the session with a new owner until it rests, and ends each wait on the way.
    async fn drive(&mut self) -> Result<(), Fault> {
        self.told.push_str("the last owner\n");
        self.kill().await?;
        for _ in 0..400 {
            self.rest().await?;
            let settled = within(20_000, self.session.settled()).await;
            let settled = settled.ok_or("it goes on")?.map_err(|e| e.to_string())?;
            let seen = self.seen().await?;
            let message = match &*settled {
                Settled::Paused => Message::from(Wanted::Pause(false)),
                Settled::Asks(_) | Settled::Doubt(_) | Settled::Waits(_) => {
                    let Some(message) = self.ends(&settled, &seen)? else {
                        turns(50).await;
                        continue;
                    };
                    message
                }
                Settled::Empty
                | Settled::Answered { .. }
                | Settled::Limit { .. }
                | Settled::Failed { .. }
                | Settled::Cancelled => {
                    return self.hears().await;
                }
            };
            writeln!(self.told, "{message:?}").unwrap();
            self.says(&message, &seen);
            let receipt = within(20_000, self.session.send(message)).await;
            let receipt = receipt
                .ok_or("the end of its wait gets no receipt")?
                .map_err(|e| e.to_string())?;
            writeln!(self.told, "  {:?}", receipt.fate).unwrap();
            if let Fate::Refused(why) = receipt.fate {
                return Err(format!("the end of its wait is refused: {why}"));
            }
            self.repeats()?;
        }
        Err("it does not come to rest".to_owned())
    }

    /// Returns the message that ends the first wait on any branch. `None` means that time ends it, and has passed.
    fn ends(&self, settled: &Settled, seen: &Inspection) -> Result<Option<Message>, Fault> {
        if let Settled::Asks(pending) | Settled::Doubt(pending) | Settled::Waits(pending) = settled
            && let Some(untold) = pending.iter().find(|p| {
                let mut told = seen.pending.iter();
                !told.any(|q| (q.effect, q.branch, q.kind) == (p.effect, p.branch, p.kind))
            })
        {
            return Err(format!("`inspect` does not list {untold:?}"));
        }
        let untold = seen.ledger.effects().find(|(id, record)| {
            let told = |p: &Pending| (p.effect, p.kind) == (*id, PendingKind::Doubt);
            record.class == Some(Class::Unsafe)
                && record.in_doubt()
                && !seen.pending.iter().any(told)
        });
        if let Some((untold, record)) = untold {
            return Err(format!(
                "{untold} is in doubt and not listed: {record:?}, {:?}",
                seen.pending
            ));
        }
        let Some(first) = seen.pending.iter().max_by_key(|p| p.kind.is_asked()) else {
            return Err(format!(
                "it waits, and nothing is listed: {settled:?}, {:?}",
                seen.settled
            ));
        };
        let by: Name = "user".into();
        let of = first.id();
        Ok(Some(match (first.kind, first.due) {
            (PendingKind::Doubt, _) => resolved(of, 0),
            (kind, _) if kind.is_asked() => Wanted::Approve { of, args: None }.by(by),
            (PendingKind::Hold, _) => {
                let all = first.because.as_deref() == Some(HELD_ALL);
                let tool = first.tool.clone().filter(|_| !all);
                Wanted::Hold { tool, held: false }.by(by)
            }
            (_, Some(due)) => {
                let now = self.world.engine.clock().now();
                let left = u64::try_from(due.0 - now.0).unwrap_or_default();
                self.world.clock.advance(left + 1);
                return Ok(None);
            }
            _ => return Err(format!("nobody can end {first:?}")),
        }))
    }

    /// A session at rest takes a message.
    async fn hears(&mut self) -> Result<(), Fault> {
        let heard = within(20_000, self.session.say("And now?")).await;
        let receipt = heard
            .ok_or("a message gets no receipt")?
            .map_err(|e| e.to_string())?;
        writeln!(self.told, "And now?\n  {:?}", receipt.fate).unwrap();
        match receipt.fate {
            Fate::Taken(_) => self.rest().await,
            other => Err(format!("a message at rest is not taken: {other:?}")),
        }
    }

    /// Checks what `fsck` checks, and that no acknowledged message is lost.
    async fn check(&self) -> Result<(), Fault> {
        self.repeats()?;
        let stopped = within(20_000, self.session.clone().stop()).await;
        stopped.ok_or("the stop does not end")?;
        let seen = self.seen().await?;
        let store = self.world.engine.store();
        let query = SessionQuery {
            prefix: Some("session".to_owned()),
            ..SessionQuery::default()
        };
        let info = store.sessions(&query).await.unwrap().remove(0);
        let load = Load::new(store.clone(), info.id.clone(), info.salt);
        let report = load.inspect().await.map_err(|e| e.to_string())?;
        if !report.damaged.is_empty() {
            return Err(format!("damaged: {report:?}"));
        }
        let stale = load.stale_checkpoints().await.map_err(|e| e.to_string())?;
        if !stale.is_empty() {
            return Err(format!("stale checkpoints: {stale:?}"));
        }
        let lines = self.world.lines().await;
        let entries = lines.iter().flat_map(|line| &line.ledger);
        let taken = entries.filter_map(|entry| match entry {
            LedgerEntry::Accepted { message, .. } => Some(message.clone()),
            _ => None,
        });
        let mut ids = BTreeSet::new();
        for id in taken {
            if !ids.insert(id.clone()) {
                return Err(format!("message `{id}` was taken twice"));
            }
        }
        for id in &self.acknowledged {
            if !ids.contains(id) && !seen.inbox.iter().any(|m| m.id == *id) {
                return Err(format!("message `{id}` was acknowledged and is lost"));
            }
        }
        let kept = Kept {
            wants: info.left.wants,
            place: info.left.place.clone(),
            ids,
            ..Kept::default()
        };
        let feed = self.world.engine.feed("session", Line::NONE);
        let found = differs(&seen, feed, &kept)
            .await
            .map_err(|e| e.to_string())?;
        if found.is_empty() {
            Ok(())
        } else {
            Err(found.join("\n"))
        }
    }
}

/// The target of an act: a branch, the branch that the message names if it names one, and a line of it.
#[derive(Copy, Clone)]
struct Place {
    any: Id,
    branch: Option<Id>,
    line: Option<Line>,
}

type Act = (&'static str, Message);

fn speaks(draws: &mut Draws, branch: Option<Id>) -> Act {
    let (text, by) = ("Stop that.".to_owned(), None);
    match draws.below(3) {
        0 => ("interrupt", Wanted::Interrupt(text).by(by).on(branch)),
        1 => ("say", said("Go on.", None)),
        _ => ("say", said("Go on.", branch)),
    }
}

fn branches(draws: &mut Draws, seen: &Inspection, place: Place) -> Act {
    let Place { any, branch, line } = place;
    let say = (!draws.one_in(3)).then(|| "And this.".to_owned());
    let at = line.filter(|_| draws.one_in(2));
    let (label, live) = (None, draws.one_in(2));
    match draws.below(11) {
        0 | 1 => (
            "fork",
            Wanted::Fork {
                at,
                label,
                say,
                live,
            }
            .on(branch),
        ),
        2 => (
            "rewind",
            Wanted::Rewind {
                at: line.unwrap_or(Line(1)),
                label,
                say,
            }
            .on(branch),
        ),
        3 | 4 => ("adopt", Message::from(Wanted::Adopt { branch: any, at })),
        5 => {
            // A branch that a search opened, its root, or the branch that it runs on.
            let searched = seen.ledger.searches().flat_map(|(id, s)| {
                let root = s.agent.is_none().then_some(id);
                let tried = s.tried.iter().copied();
                root.into_iter().chain(tried).chain([s.branch])
            });
            let searched: Vec<Id> = searched.collect();
            let branch = draws.of(&searched).copied().unwrap_or(any);
            ("adopt", Message::from(Wanted::Adopt { branch, at: None }))
        }
        6 => ("current", Message::from(Wanted::Current(any))),
        7 => {
            let ids: Vec<Id> = seen.branches.iter().map(|b| b.id).collect();
            let mut branches = vec![any];
            branches.extend(draws.of(&ids));
            branches.dedup();
            let on = if live { JoinOn::All } else { JoinOn::Any };
            (
                "join",
                Message::from(Wanted::join(branches, &on, None, None)),
            )
        }
        8 | 9 => {
            let methods = [Method::BestOf, Method::Beam, Method::Rollouts, Method::Mcts];
            let (method, n) = (methods[draws.below(4)], 1 + draws.below(3) as u32);
            let plan = Plan {
                score: Some(Scorer::Expr(Expr::parse("state.sum").unwrap())),
                live,
                ..Plan::of(method, n)
            };
            let (at, plan) = (line, plan.to_json().to_string());
            ("search", Wanted::Search { at, say, plan }.on(branch))
        }
        _ => ("stop search", Message::from(Wanted::StopSearch(None))),
    }
}

fn orders(draws: &mut Draws, seen: &Inspection, branch: Option<Id>) -> Act {
    let by: Name = "user".into();
    let tools = [None, Some("pay"), Some("pay_asked"), Some("note")];
    let tool = draws.of(&tools).copied().flatten().map(Name::from);
    match draws.below(7) {
        0 => {
            let all = &seen.branches;
            let agents = all.iter().flat_map(|b| b.snapshot.agents.keys());
            let agents: Vec<Id> = agents.copied().collect();
            let effects = all.iter().flat_map(|b| b.snapshot.effects.keys());
            let effects: Vec<Id> = effects.copied().collect();
            let what = match draws.below(5) {
                0 => CancelWhat::Session,
                1 => draws
                    .of(&agents)
                    .map_or(CancelWhat::Session, |a| CancelWhat::Agent(*a)),
                2 => draws
                    .of(&effects)
                    .map_or(CancelWhat::Branch, |e| CancelWhat::Effect(*e)),
                _ => CancelWhat::Branch,
            };
            ("cancel", Wanted::Cancel(what).by(by).on(branch))
        }
        1 => ("pause", Message::from(Wanted::Pause(true))),
        2 => ("resume", Message::from(Wanted::Pause(false))),
        3 => {
            let held = true;
            ("hold", Wanted::Hold { tool, held }.by(by))
        }
        4 => {
            let held = false;
            ("release", Wanted::Hold { tool, held }.by(by))
        }
        5 => {
            let pending = draws.of(&seen.pending).map(|p| p.effect);
            let effect = pending.filter(|_| draws.one_in(2));
            ("retry", Wanted::Retry(effect).by(by))
        }
        _ => {
            let writes = vec![("mood".into(), Some("\"sad\"".to_owned()))];
            ("edit", Wanted::Edit(writes).by(by))
        }
    }
}

fn decides(draws: &mut Draws, seen: &Inspection) -> Act {
    let by: Name = "user".into();
    let Some(pending) = draws.of(&seen.pending) else {
        return ("say", said("Anything?", None));
    };
    let of = pending.id();
    let (reason, mut args) = (None, None);
    match (pending.kind, draws.below(4)) {
        (PendingKind::Doubt, n) => ("resolve", resolved(of, n)),
        (_, 0) => ("reject", Wanted::Reject { of, reason }.by(by)),
        (PendingKind::Approval, 1) => {
            args = Some(json!({ "cents": 7 }).to_string());
            ("edit args", Wanted::Approve { of, args }.by(by))
        }
        _ => ("approve", Wanted::Approve { of, args }.by(by)),
    }
}

fn said(text: &str, branch: Option<Id>) -> Message {
    Wanted::Say {
        text: text.to_owned(),
        to: None,
    }
    .on(branch)
}

fn resolved(of: PendingId, n: usize) -> Message {
    let how = match n {
        0 => Resolution::Done {
            result: "\"it is done\"".to_owned(),
        },
        1 => Resolution::NotPerformed,
        _ => Resolution::Fail,
    };
    Wanted::Resolve { of, how }.by("user")
}

/// Plays one sequence. An error has the fault and the orders.
async fn sequence(seed: u64) -> Result<Play, String> {
    let mut play = Play::begin(seed).await;
    let played = async {
        let steps = 3 + play.draws.below(23);
        for _ in 0..steps {
            play.step().await?;
        }
        play.drive().await?;
        play.check().await
    };
    match played.await {
        Ok(()) => Ok(play),
        Err(fault) => {
            let printed = match std::env::var("STEERSMAN_TRACE") {
                Ok(_) => play.world.printed().await,
                Err(_) => String::new(),
            };
            Err(format!("sequence {seed}: {fault}\n{}{printed}", play.told))
        }
    }
}

fn asked(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Plays 8 sequences. `STEERSMAN_SEQUENCES` sets another number of them and `STEERSMAN_RANDOM_SEED` the first seed.
/// `STEERSMAN_TRACE` prints the log of a sequence that fails.
#[tokio::test]
async fn whatever_is_ordered_in_whatever_order_a_new_owner_can_drive_it() {
    let first = asked("STEERSMAN_RANDOM_SEED", 1);
    let sequences = asked("STEERSMAN_SEQUENCES", 8);
    let mut acts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let (mut kills, mut faults) = (0, Vec::new());
    for seed in first..first + sequences {
        match sequence(seed).await {
            Ok(play) => {
                kills += play.kills;
                for (act, (ordered, taken)) in play.acts {
                    let known = acts.entry(act).or_default();
                    *known = (known.0 + ordered, known.1 + taken);
                }
            }
            Err(fault) => {
                println!("{}", fault.lines().next().unwrap_or_default());
                faults.push(fault);
            }
        }
    }
    println!("{sequences} sequences from {first}: {kills} kills, {acts:?}");
    let (n, first) = (faults.len(), faults.first());
    assert!(
        faults.is_empty(),
        "{n} of {sequences} failed. {}",
        first.unwrap()
    );
    // An act that is never taken tests nothing.
    if sequences >= 300 {
        assert!(
            acts.len() >= 18 && acts.values().all(|(_, taken)| *taken > 0),
            "{acts:?}"
        );
    }
}
