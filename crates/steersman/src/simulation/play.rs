//! Plays a plan: a real engine over a store in memory, in one thread, on a clock that jumps.

use super::clock::Jumping;
use super::dice::Dice;
use super::judge::{Played, Sent};
use super::models::Random;
use super::plan::{Act, Plan, Step};
use super::store::{Fault, Faulty};
use super::stubs::Stubs;
use super::tools::{Tools, World};
use crate::Network;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network as checked;
use steersman_machine::network::SecretSource;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::values::expression::Names;
use steersman_machine::values::types::{TypeKind, canonical};
use steersman_runtime::Env;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::engine::{Engine, Inspection, Options, Parts, Process, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Fate, Session};
use steersman_runtime::store::awkward::AwkwardStore;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Store, Worker};

/// The time at which simulations begin: 2026-01-05, a Monday, 08:00 UTC.
pub(super) const BEGIN: Time = Time(1_767_600_000_000);
/// The id of the simulated session.
pub(super) const SESSION: &str = "simulated";
/// Milliseconds that a person waits for a receipt.
const PATIENCE: u64 = 600_000;
/// Milliseconds after the last fault in which a session must come to rest.
const REST: u64 = 30 * 24 * 3_600_000;
/// The pause between two looks at whether it rests.
const LOOK: u64 = 3_600_000;

/// Event of a process that a fault of its store ended.
const DIED: &str = "the process dies while it writes; another one goes on";
/// Event of a process that a fault of its store let stand still.
const STOOD: &str =
    "the owner stands still while it writes, and loses its lease; another process goes on";

/// The reasons to go on after waiting.
enum Came {
    Time,
    /// A fault ended the process, or let it stand still.
    Fault,
    /// A tool runs, and the owner is to stop then.
    Work,
}

/// A process that may own the session.
struct Alive {
    engine: Engine,
    store: Arc<Faulty>,
}

impl Alive {
    async fn dies(self) {
        self.store.die();
        self.engine.kill().await;
    }
}

/// A session that is played.
struct Play<'a> {
    network: &'a Network,
    plan: &'a Plan,
    stubs: Arc<Stubs>,
    clock: Jumping,
    /// The store that outlives processes. `awkward` if leases can be ended.
    below: Arc<dyn Store>,
    awkward: Option<AwkwardStore>,
    sealer: Sealer,
    world: Arc<World>,
    process: Alive,
    /// Number of processes so far.
    processes: u64,
    /// Owners that lost their lease.
    overtaken: Vec<Alive>,
    /// The owner stops as soon as a tool runs.
    stops_at_work: bool,
    sent: Vec<Sent>,
    told: Vec<(Time, String)>,
}

/// Plays a plan in this thread.
///
/// # Errors
/// The session cannot begin, or its store cannot be read at the end.
pub(super) fn play(
    network: &Network,
    stubs: &Arc<Stubs>,
    plan: &Plan,
) -> Result<(tokio::runtime::Runtime, Played), String> {
    let clock = Jumping::at(BEGIN);
    let jumps = clock.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .on_thread_park(move || jumps.jump())
        .build()
        .map_err(|e| e.to_string())?;
    let played = runtime.block_on(Box::pin(async {
        let mut play = Play::new(network, stubs.clone(), plan, clock.clone());
        let plays = async {
            play.begins().await?;
            for step in &plan.steps {
                play.step(*step).await?;
            }
            play.ends().await
        };
        let played = tokio::select! {
            biased;
            played = plays => Some(played),
            () = clock.stands_still() => None,
        };
        let told = || play.told.last().map_or("", |(_, text)| text.as_str());
        played.unwrap_or_else(|| Err(format!("nothing goes on any more, after: {}", told())))
    }))?;
    Ok((runtime, played))
}

impl<'a> Play<'a> {
    fn new(network: &'a Network, stubs: Arc<Stubs>, plan: &'a Plan, clock: Jumping) -> Self {
        let awkward = (plan.seed % 2 == 1).then(AwkwardStore::new);
        let below: Arc<dyn Store> = match &awkward {
            Some(awkward) => Arc::new(awkward.clone()),
            None => Arc::new(MemoryStore::new()),
        };
        let sealer = Sealer::new(&[7; 32]);
        let world = Arc::<World>::default();
        let parts = (&below, &clock, &sealer, &world);
        let process = process(network, &stubs, plan, parts, 1);
        Self {
            network,
            plan,
            stubs,
            clock,
            below,
            awkward,
            sealer,
            world,
            process,
            processes: 1,
            overtaken: Vec::new(),
            stops_at_work: false,
            sent: Vec::new(),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, text: impl Into<String>) {
        self.told.push((self.clock.now(), text.into()));
    }

    /// Starts another process over the same store.
    fn another(&mut self) -> Alive {
        self.processes += 1;
        let parts = (&self.below, &self.clock, &self.sealer, &self.world);
        let next = process(self.network, &self.stubs, self.plan, parts, self.processes);
        std::mem::replace(&mut self.process, next)
    }

    async fn begins(&mut self) -> Result<(), String> {
        let mut dice = Dice::of(&[self.plan.seed, 2]);
        let text = self.says(&mut dice);
        self.tell(format!("you say: {}", short(&text)));
        let options = StartOptions {
            id: Some(SESSION.into()),
            say: Some(text),
            message_id: Some("m1".into()),
            seed: Some(self.plan.seed),
            folder: self.network.folder().map(|f| f.display().to_string()),
            ..StartOptions::default()
        };
        let checked = self.network.checked().clone();
        let created = self.process.engine.create(checked, options).await;
        created.map_err(|e| e.to_string())?;
        self.sent.push(Sent {
            id: "m1".into(),
            fate: Some(Fate::Lies),
        });
        Ok(())
    }

    /// Waits, then does the step. If the process goes away meanwhile, another one goes on.
    async fn step(&mut self, step: Step) -> Result<(), String> {
        let due = self.clock.now().plus(step.after);
        loop {
            match self.waits_until(due).await {
                Came::Time => break,
                Came::Fault => self.replaces().await,
                Came::Work => {
                    self.stops("the owner stops while a tool runs, and another process goes on")
                        .await;
                    self.session().await;
                }
            }
        }
        let mut dice = Dice::of(&[step.salt]);
        match step.act {
            Act::Stop if dice.percent(20) => {
                self.stops("the owner stops, and another process goes on")
                    .await;
            }
            Act::Stop => self.stops_at_work = true,
            Act::Die => {
                self.tell("the process dies, and another one goes on");
                self.dies().await;
            }
            Act::DieWriting => {
                let fault = if dice.percent(50) {
                    Fault::Lost
                } else {
                    Fault::Written
                };
                self.process.store.plan(Some(fault));
            }
            Act::Fail => {
                self.tell("the store fails once");
                self.process.store.plan(Some(Fault::Fails));
            }
            Act::Late => {
                let millis = dice.below(100_000);
                self.process.store.plan(Some(Fault::Late(millis)));
            }
            Act::Overtake => self.overtakes(&mut dice).await,
            act => self.acts(act, &mut dice).await?,
        }
        // Somebody drives the session again.
        self.session().await;
        Ok(())
    }

    /// Waits until this time, or until something has to happen before.
    async fn waits_until(&self, due: Time) -> Came {
        if self.process.store.is_lost() {
            return Came::Fault;
        }
        tokio::select! {
            biased;
            () = self.process.store.faults.notified() => Came::Fault,
            () = self.world.works.notified(), if self.stops_at_work => Came::Work,
            () = self.clock.sleep_until(due) => Came::Time,
        }
    }

    /// The owner stops in an orderly way, or is killed if that takes too long.
    async fn stops(&mut self, told: &str) {
        self.tell(told);
        self.stops_at_work = false;
        let clock = self.clock.clone();
        let stops = self.process.engine.stop();
        let stopped = tokio::select! {
            biased;
            () = stops => true,
            () = clock.sleep(PATIENCE) => false,
        };
        let old = self.another();
        if !stopped {
            old.dies().await;
        }
    }

    async fn dies(&mut self) {
        self.another().dies().await;
        self.session().await;
    }

    /// Another process goes on for one that a fault of its store ended or let stand still.
    async fn replaces(&mut self) {
        self.gives_way().await;
        self.session().await;
    }

    async fn gives_way(&mut self) {
        if self.process.store.is_dead() {
            self.tell(DIED);
            self.another().dies().await;
        } else {
            self.takes_over(STOOD, AwkwardStore::ends_lease_unheard)
                .await;
        }
    }

    /// Draws how the owner loses its lease: it hears of it at once, it hears of it when it writes, or it writes when another
    /// one has long gone on.
    async fn overtakes(&mut self, dice: &mut Dice) {
        if self.awkward.is_none() {
            return;
        }
        match dice.below(4) {
            0 => {
                let told = "the owner loses its lease, and another process goes on";
                self.takes_over(told, AwkwardStore::ends_lease).await;
            }
            1 => {
                let told =
                    "the owner loses its lease and does not know it; another process goes on";
                self.takes_over(told, AwkwardStore::ends_lease_unheard)
                    .await;
            }
            _ => {
                let millis = dice.below(100_000);
                self.process.store.plan(Some(Fault::Still(millis)));
            }
        }
    }

    /// Ends the lease of the owner. It goes on for a while together with the process that takes its place.
    async fn takes_over(&mut self, told: &str, ends: impl FnOnce(&AwkwardStore, &Worker)) {
        let worker = self.process.engine.worker().await;
        if let (Ok(worker), Some(awkward)) = (worker, &self.awkward) {
            ends(awkward, worker);
        }
        self.tell(told);
        let old = self.another();
        self.overtaken.push(old);
    }

    /// Opens the session in the present process. A store that fails is tried again.
    async fn session(&mut self) -> Option<Session> {
        for _ in 0..8 {
            let opened = tokio::select! {
                biased;
                () = self.process.store.faults.notified() => None,
                opened = self.process.engine.open(SESSION) => Some(opened),
                () = self.clock.sleep(PATIENCE) => None,
            };
            match opened {
                Some(Ok(session)) => return Some(session),
                Some(Err(_)) => self.clock.sleep(1_000).await,
                None if self.process.store.is_lost() => self.gives_way().await,
                None => {
                    self.tell("the session does not open; another process goes on");
                    self.another().dies().await;
                }
            }
        }
        None
    }

    /// Sends messages of people, in order.
    async fn acts(&mut self, act: Act, dice: &mut Dice) -> Result<(), String> {
        if matches!(act, Act::Pause | Act::Resume) {
            let paused = act == Act::Pause;
            let word = if paused { "pause" } else { "resume" };
            return self
                .sends(word, &Message::from(Wanted::Pause(paused)))
                .await;
        }
        let Ok(seen) = self.looks().await else {
            return Ok(());
        };
        let twice = act == Act::DecideTwice;
        let Some((told, message)) = self.message(act, dice, &seen) else {
            return Ok(());
        };
        self.sends(&told, &message).await?;
        if twice {
            self.sends(&format!("{told}, once more"), &message).await?;
        }
        Ok(())
    }

    async fn sends(&mut self, told: &str, message: &Message) -> Result<(), String> {
        let id: Name = format!("m{}", self.sent.len() + 1).into();
        let Some(session) = self.session().await else {
            return Ok(());
        };
        let receipt = tokio::select! {
            biased;
            receipt = session.send_as(id.clone(), message.clone()) => Some(receipt),
            () = self.process.store.faults.notified() => None,
            () = self.clock.sleep(PATIENCE) => None,
        };
        let fate = match receipt {
            Some(Ok(receipt)) => Some(receipt.fate),
            Some(Err(_)) | None => None,
        };
        let became = match &fate {
            Some(Fate::Taken(line)) => format!("taken, line {line}"),
            Some(Fate::Waits(why)) => format!("waits: {why}"),
            Some(Fate::Refused(why)) => format!("refused: {}", short(why)),
            Some(Fate::Known) => "known".to_owned(),
            Some(Fate::Lies) => "in the inbox".to_owned(),
            None => "no receipt".to_owned(),
        };
        self.tell(format!("you {told} ({became})"));
        self.sent.push(Sent { id, fate });
        if self.process.store.is_lost() {
            self.replaces().await;
        }
        Ok(())
    }

    async fn looks(&self) -> Result<Inspection, String> {
        let seen = self.process.engine.inspect(SESSION).await;
        seen.map_err(|e| e.to_string())
    }

    fn says(&self, dice: &mut Dice) -> String {
        match dice.pick(&self.stubs.said) {
            Some(text) if dice.percent(80) => text.clone(),
            _ if dice.percent(50) => "Go on.".to_owned(),
            _ => self.stubs.values.text(dice),
        }
    }

    /// Draws what a person does, in words, and as a message.
    fn message(&self, act: Act, dice: &mut Dice, seen: &Inspection) -> Option<(String, Message)> {
        let branches: Vec<Id> = seen.branches.iter().map(|b| b.id).collect();
        let any = *dice.pick(&branches)?;
        let others: Vec<Id> = branches
            .into_iter()
            .filter(|b| *b != seen.current)
            .collect();
        let branch = dice.percent(30).then_some(any);
        let lines = seen.info.head.0;
        let by: Name = "user".into();
        Some(match act {
            Act::Decide | Act::DecideTwice | Act::DecideWrongly => {
                let asked = seen.pending.iter().filter(|p| p.kind.is_asked());
                let asked: Vec<&Pending> = asked.collect();
                let pending = *dice.pick(&asked)?;
                return Some(self.decides(dice, pending, act == Act::DecideWrongly));
            }
            Act::Say => {
                let text = self.says(dice);
                let told = format!("say: {}", short(&text));
                (told, Wanted::Say { text, to: None }.on(branch))
            }
            Act::Interrupt => {
                let text = self.says(dice);
                let told = format!("interrupt: {}", short(&text));
                (told, Wanted::Interrupt(text).on(branch))
            }
            Act::Event => {
                let (event, fields) = dice.pick(&self.stubs.events)?.clone();
                let fields = canonical(&fields);
                let def = self.network.checked().events.get(&event)?;
                let names = Names::from_json(json!({ "event": fields }));
                def.id.render(&names).ok()?;
                let told = format!("bring the event {event}");
                let fields = fields.to_string();
                (told, Message::from(Wanted::Event { event, fields }))
            }
            Act::Cancel => {
                let view = seen.branches.iter().find(|b| b.id == any)?;
                let agents: Vec<Id> = view.snapshot.agents.keys().copied().collect();
                let effects: Vec<Id> = view.snapshot.effects.keys().copied().collect();
                let what = match dice.below(4) {
                    0 => CancelWhat::Session,
                    1 => CancelWhat::Branch,
                    2 => CancelWhat::Agent(*dice.pick(&agents)?),
                    _ => CancelWhat::Effect(*dice.pick(&effects)?),
                };
                let told = format!("cancel {what:?}");
                (told, Wanted::Cancel(what).by(by).on(Some(any)))
            }
            Act::Fork => {
                let at = dice.percent(50).then(|| Line(1 + dice.below(lines)));
                let live = dice.percent(30);
                let fork = Wanted::Fork {
                    at,
                    label: None,
                    say: Some(self.says(dice)),
                    live,
                };
                ("fork".to_owned(), fork.on(branch))
            }
            Act::Rewind => {
                let at = Line(1 + dice.below(lines));
                let rewind = Wanted::Rewind {
                    at,
                    label: None,
                    say: dice.percent(50).then(|| self.says(dice)),
                };
                (format!("rewind to line {at}"), rewind.on(branch))
            }
            Act::Adopt => {
                let branch = *dice.pick(&others)?;
                let adopt = Wanted::Adopt { branch, at: None };
                (format!("adopt branch {branch}"), Message::from(adopt))
            }
            Act::Current => {
                let branch = *dice.pick(&others)?;
                let told = format!("make branch {branch} current");
                (told, Message::from(Wanted::Current(branch)))
            }
            Act::Hold | Act::Release => {
                let tools = self.network.checked().tools.keys();
                let tools: Vec<&Name> = tools.collect();
                let tool = dice.pick(&tools).map(|tool| (*tool).clone());
                let tool = tool.filter(|_| dice.percent(70));
                let held = act == Act::Hold;
                let word = if held { "hold" } else { "release" };
                let told = format!("{word} {}", tool.as_deref().unwrap_or("all tools"));
                (told, Wanted::Hold { tool, held }.by(by))
            }
            Act::Retry => ("retry".to_owned(), Wanted::Retry(None).by(by)),
            _ => return None,
        })
    }

    /// Draws the decision of a person. People say the truth about effects in doubt.
    fn decides(&self, dice: &mut Dice, pending: &Pending, wrongly: bool) -> (String, Message) {
        let role = pending.roles.first().filter(|_| !wrongly);
        let by: Name = role.cloned().unwrap_or_else(|| "user".into());
        let what = pending.tool.as_deref().unwrap_or("an open question");
        let of = pending.id();
        let (word, wanted) = match (pending.kind, dice.below(4)) {
            (PendingKind::Doubt, n) => {
                let (word, how) = match self.world.of(pending.effect) {
                    // Nobody knows what an attempt will do that still runs.
                    Some(done) if n == 0 || done.running > 0 => {
                        ("give up the doubt about", Resolution::Fail)
                    }
                    Some(done) if done.times > 0 => {
                        let result = done.result.to_string();
                        ("say it happened:", Resolution::Done { result })
                    }
                    _ => ("say it did not happen:", Resolution::NotPerformed),
                };
                (word, Wanted::Resolve { of, how })
            }
            (PendingKind::Question | PendingKind::Input, 1..) => {
                let text = match dice.pick(&self.stubs.given) {
                    Some(text) if dice.percent(80) => text.clone(),
                    _ => match dice.pick(&pending.options) {
                        Some(option) => option.clone(),
                        None => self.stubs.values.text(dice),
                    },
                };
                let sealed = self.sealer.seal_text(&text);
                ("answer", Wanted::Answer { of, sealed })
            }
            (_, 0) => {
                let reason = dice.percent(50).then(|| "Not now.".to_owned());
                ("reject", Wanted::Reject { of, reason })
            }
            (PendingKind::Approval, 1) if !pending.edit.is_empty() => {
                let edits = pending.edit.iter();
                let edits =
                    edits.map(|name| (name.to_string(), self.stubs.values.number(dice).into()));
                let args = serde_json::Value::Object(edits.collect());
                let args = Some(args.to_string());
                (
                    "approve, with other arguments,",
                    Wanted::Approve { of, args },
                )
            }
            _ => ("approve", Wanted::Approve { of, args: None }),
        };
        (format!("{word} {what} as {by}"), wanted.by(by))
    }

    /// Ends all faults, lets the session come to rest, and reads it.
    async fn ends(&mut self) -> Result<Played, String> {
        self.process.store.plan(None);
        if self.process.store.is_lost() {
            self.replaces().await;
        }
        // An owner that stands still would have no time to write if the session rests already.
        let still = self.overtaken.iter().filter_map(|old| old.store.still());
        if let Some(last) = still.max() {
            self.clock.sleep_until(last).await;
        }
        self.tell("no more faults");
        let paused = self.looks().await?.ledger.paused;
        if paused {
            self.sends("resume", &Message::from(Wanted::Pause(false)))
                .await?;
        }
        let rested = self.rests().await;
        for old in std::mem::take(&mut self.overtaken) {
            old.dies().await;
        }
        let engine = self.process.engine.clone();
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            () = engine.stop() => {}
            () = clock.sleep(PATIENCE) => {}
        }
        let seen = engine.inspect(SESSION).await.map_err(|e| e.to_string())?;
        let lines = engine.feed(SESSION, Line::NONE).lines().await;
        let lines = lines.map_err(|e| e.to_string())?;
        let heard = match rested {
            Ok(()) => self.hears(&seen).await,
            Err(_) => Ok(()),
        };
        Ok(Played {
            engine,
            seen,
            lines,
            world: self.world.clone(),
            sent: std::mem::take(&mut self.sent),
            told: std::mem::take(&mut self.told),
            rested,
            heard,
        })
    }

    /// Gives an answer to a question that is open at the end, in another process. Returns its refusal.
    async fn hears(&mut self, seen: &Inspection) -> Result<(), String> {
        let is_asked = |pending: &&Pending| {
            matches!(pending.kind, PendingKind::Question | PendingKind::Approval)
                && pending.due.is_none()
        };
        let Some(pending) = seen.pending.iter().find(is_asked) else {
            return Ok(());
        };
        let of = pending.id();
        let wanted = if pending.kind == PendingKind::Question {
            let text = pending.options.first().map_or("Yes.", String::as_str);
            let sealed = self.sealer.seal_text(text);
            Wanted::Answer { of, sealed }
        } else {
            Wanted::Reject { of, reason: None }
        };
        let by = pending
            .roles
            .first()
            .cloned()
            .unwrap_or_else(|| "user".into());
        self.another();
        let Some(session) = self.session().await else {
            return Ok(());
        };
        let receipt = tokio::select! {
            biased;
            receipt = session.send_as("last".into(), wanted.by(by)) => receipt.ok(),
            () = self.clock.sleep(PATIENCE) => None,
        };
        self.another().dies().await;
        match receipt.map(|receipt| receipt.fate) {
            Some(Fate::Refused(why)) => Err(format!("{of}: {why}")),
            _ => Ok(()),
        }
    }

    /// Waits until the session rests. Returns what it still does if it never rests.
    async fn rests(&mut self) -> Result<(), String> {
        let end = self.clock.now().plus(REST);
        let mut last = "it cannot be opened".to_owned();
        while self.clock.now() < end {
            let Some(session) = self.session().await else {
                self.clock.sleep(LOOK).await;
                continue;
            };
            let settled = tokio::select! {
                biased;
                settled = session.settled() => Some(settled),
                () = self.clock.sleep(LOOK) => None,
            };
            match settled {
                Some(Ok(_)) => return Ok(()),
                Some(Err(error)) => {
                    last = error.to_string();
                    self.clock.sleep(LOOK).await;
                }
                None => last = format!("{:?}", session.outside().await.ok()),
            }
        }
        Err(last)
    }
}

/// The parts that processes share.
type Shared<'a> = (&'a Arc<dyn Store>, &'a Jumping, &'a Sealer, &'a Arc<World>);

fn process(
    network: &Network,
    stubs: &Arc<Stubs>,
    plan: &Plan,
    (below, clock, sealer, world): Shared<'_>,
    number: u64,
) -> Alive {
    let store = Arc::new(Faulty::new(below.clone(), clock.clone(), plan.store_takes));
    let checked = network.checked();
    let models = Random {
        seed: plan.seed,
        lies: plan.models_lie,
        clock: clock.clone(),
        stubs: stubs.clone(),
        agents: checked.agents.keys().cloned().collect(),
    };
    let tools = Tools {
        seed: plan.seed,
        fails: plan.tools_fail,
        clock: clock.clone(),
        stubs: stubs.clone(),
        world: world.clone(),
    };
    let engine = Engine::new(Parts {
        store: store.clone(),
        clock: Arc::new(clock.clone()),
        models: Arc::new(models),
        toolsets: vec![Arc::new(tools)],
        sealer: sealer.clone(),
        options: Options {
            env: environment(checked),
            process: Process {
                owner: format!("simulated:{number}").into(),
                build: "0".into(),
            },
            ..Options::default()
        },
    });
    engine.register(checked);
    Alive { engine, store }
}

/// Returns an environment with a value for each variable that a definition needs.
fn environment(network: &checked::Network) -> Env {
    let mut values = BTreeMap::new();
    for config in network.config.values() {
        let Some(variable) = config.env.clone().filter(|_| config.default.is_none()) else {
            continue;
        };
        let value = match config.ty.kind {
            TypeKind::Integer { .. } | TypeKind::Number { .. } => "3",
            TypeKind::Boolean => "true",
            _ => "simulated",
        };
        values.insert(variable, value);
    }
    for secret in network.secrets.values() {
        if let SecretSource::Env(variable) = &secret.source {
            values.insert(variable.clone(), "a simulated secret");
        }
    }
    Arc::new(move |name: &str| values.get(name).map(|value| (*value).to_owned()))
}

/// Returns the beginning of a text, in one line.
fn short(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= 80 {
        return line;
    }
    let cut: String = line.chars().take(77).collect();
    format!("{cut}...")
}
