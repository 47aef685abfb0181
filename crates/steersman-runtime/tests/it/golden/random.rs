//! Plays random sessions through an engine. The network is one of the machine's random sessions, or the definition of
//! [`crate::sequences`]; models, tools and people act at random. All of it follows from the seed.

use super::chance::{Chance, Things};
use super::stage::{Memory, SESSION, Stage, TURNS, Told};
use crate::sequences::{DESK, within};
use crate::world::{self, NOON};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::network::search::{Method, Plan, Scorer};
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::values::expression::Expr;
use steersman_machine::view::artifact::Content;
use steersman_runtime::clock::{Clock as _, Virtual};
use steersman_runtime::engine::{Engine, Inspection, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::session::Session;
use steersman_runtime::store::Inbox as _;
use steersman_testkit::random::{self, Dice};

/// The most times at which the clock stops on its way.
const STOPS: usize = 30;

/// A random session that is played.
struct Play {
    dice: Dice,
    network: Arc<Network>,
    stage: Stage,
    engine: Engine,
    session: Session,
    told: Told,
    messages: u64,
    /// Engines so far.
    engines: u64,
    known: Known,
}

/// Ids that orders can name, read from the log.
#[derive(Default)]
struct Known {
    cursor: Line,
    /// Lines with their branches.
    lines: Vec<(Line, Id)>,
    /// Branches, `main` first.
    branches: Vec<Id>,
    /// The current branch, once the log names one.
    current: Option<Id>,
    paused: bool,
    agents: Vec<Id>,
    effects: Vec<Id>,
}

/// Plays the session of a seed and returns the rendering of everything that it stored.
pub(super) async fn played(seed: u64, memory: Memory) -> String {
    let mut play = Play::begin(seed, memory).await;
    for _ in 0..6 + play.dice.below(10) {
        play.step().await;
    }
    let seen = play.engine.inspect(SESSION).await.unwrap();
    play.told.lists(&play.stage, &seen).await;
    play.told.kept(&play.stage).await;
    play.told.text
}

impl Play {
    async fn begin(seed: u64, memory: Memory) -> Self {
        let mut dice = Dice::new(seed);
        let drawn = dice.roll();
        let network = match seed % 4 {
            0 => world::network(DESK),
            2 => rich(),
            _ => Arc::new(random::network(drawn)),
        };
        let (clock, things) = (Virtual::at(NOON), Arc::new(Things(seed)));
        let models = Arc::new(Chance::new(clock.clone()));
        let stage = Stage::new(clock, models, things, memory);
        let engine = stage.process();
        let options = StartOptions {
            id: Some(SESSION.into()),
            say: Some("Begin.".to_owned()),
            message_id: Some("m1".into()),
            seed: Some(seed),
            ..StartOptions::default()
        };
        engine.create(network.clone(), options).await.unwrap();
        let mut told = Told::new(stage.sealer.clone());
        for stored in stage.store.inbox(SESSION).await.unwrap().1 {
            told.message(&stored);
        }
        let session = engine.open(SESSION).await.unwrap();
        let mut play = Self {
            dice,
            network,
            stage,
            engine,
            session,
            told,
            messages: 1,
            engines: 1,
            known: Known::default(),
        };
        play.rest().await;
        play
    }

    /// Waits until the session is at rest, and renders the new lines.
    async fn rest(&mut self) {
        let settled = self.stage.settle(&self.session, Vec::new).await;
        settled.unwrap_or_else(|why| panic!("{why}\n{}", self.told.text));
        self.told.lines(&self.stage, &self.engine).await;
        self.known.look(&self.engine).await;
    }

    /// Sends an order, lets time pass, or changes the owner. Then waits for rest.
    async fn step(&mut self) {
        match self.dice.below(100) {
            0..18 => {
                let millis = [1_000, 70_000, 700_000, 3_700_000];
                let millis = *self.dice.pick(&millis).unwrap();
                writeln!(self.told.text, "\n## {millis} ms pass").unwrap();
                self.pass(millis).await;
            }
            18..21 => {
                writeln!(self.told.text, "\n## another owner").unwrap();
                self.session.clone().stop().await;
                self.session = self.engine.open(SESSION).await.unwrap();
            }
            21..25 => {
                writeln!(self.told.text, "\n## another process").unwrap();
                self.another_process().await;
            }
            _ => {
                let message = self.order().await;
                self.send(message).await;
            }
        }
        self.rest().await;
    }

    /// Advances the clock, and stops at each time at which something is due. A place that does not answer is tried often, so
    /// there is a bound.
    async fn pass(&mut self, millis: u64) {
        let clock = self.stage.clock.clone();
        let end = clock.now().plus(millis);
        for _ in 0..STOPS {
            let due = self.stage.settle(&self.session, Vec::new).await;
            let due = due.unwrap().filter(|due| *due < end);
            clock.advance(clock.now().until(due.unwrap_or(end)));
            if due.is_none() {
                return;
            }
        }
    }

    async fn another_process(&mut self) {
        self.engine.kill().await;
        self.engine = self.stage.process();
        self.engines += 1;
        // A network of the machine cannot be compiled from the store. Creating a session registers it with the new engine.
        let options = StartOptions {
            id: Some(format!("other-{}", self.engines).into()),
            ..StartOptions::default()
        };
        let told = self.engine.create(self.network.clone(), options).await;
        told.unwrap();
        self.session = self.engine.open(SESSION).await.unwrap();
    }

    async fn send(&mut self, message: Message) {
        self.messages += 1;
        let id: Name = format!("m{}", self.messages).into();
        self.told.text.push('\n');
        let stored = message.encode(id.clone(), self.stage.clock.now());
        self.told.message(&stored);
        let receipt = within(TURNS, self.session.send_as(id, message)).await;
        let receipt = receipt.unwrap_or_else(|| panic!("nobody answers\n{}", self.told.text));
        let fate = receipt.unwrap().fate;
        writeln!(self.told.text, "{fate:?}").unwrap();
    }

    /// Draws the next order of a person.
    async fn order(&mut self) -> Message {
        let dice = &mut self.dice;
        let branches = &self.known.branches;
        let current = self.known.current.unwrap_or(Id::MAIN);
        let others = branches.iter().copied().filter(|b| *b != current);
        let others: Vec<Id> = others.collect();
        let any = *dice.pick(branches).unwrap();
        // Most orders about two branches are about the current one and another.
        let other = dice.pick(&others).copied().unwrap_or(any);
        let branch = dice.percent(40).then_some(any);
        let lines = self.known.lines.iter().filter(|(_, on)| *on == any);
        let lines: Vec<Line> = lines.map(|(n, _)| *n).collect();
        let at = dice.pick(&lines).copied();
        let say = dice.percent(50).then(|| "Otherwise.".to_owned());
        if self.known.paused && dice.percent(50) {
            return Message::from(Wanted::Pause(false));
        }
        let alone = others.is_empty();
        match dice.below(100) {
            0..40 => {
                let seen = self.engine.inspect(SESSION).await.unwrap();
                self.told.lists(&self.stage, &seen).await;
                self.decides(&seen)
            }
            40..52 => speaks(dice, branch, &self.known.agents),
            52..54 => brings(&self.engine, branch).await,
            54..56 if *self.network.name == *"rich" => {
                Wanted::Rebind(vec![("rate".into(), dice.below(4).to_string())]).by("user")
            }
            56..86 if alone && dice.percent(80) => Message::from(Wanted::Fork {
                at,
                label: None,
                say,
                live: dice.percent(40),
            }),
            56..64 => Wanted::Fork {
                at,
                label: dice
                    .percent(30)
                    .then(|| format!("l{}", self.messages).into()),
                say,
                live: dice.percent(40),
            }
            .on(Some(any)),
            64..68 => Wanted::Rewind {
                at: at.unwrap_or(Line(1)),
                label: None,
                say,
            }
            .on(Some(any)),
            68..71 => Message::from(Wanted::Current(other)),
            71..76 => {
                let both = BTreeSet::from([other, *dice.pick(&others).unwrap_or(&any)]);
                let on = ["all", "any", "1", "done >= 1"];
                let on = dice.pick(&on).unwrap().parse().unwrap();
                Message::from(Wanted::join(both.into_iter().collect(), &on, None, None))
            }
            76..83 => Message::from(Wanted::Adopt {
                branch: other,
                at: at.filter(|_| dice.percent(50)),
            }),
            // A search compiles the stored definition, and networks of the machine have none.
            83..86 if *self.network.name != *"random" => {
                let rich = *self.network.name == *"rich";
                searches(dice, if rich { "state.best" } else { "state.sum" }, branch)
            }
            83..90 => self.cancels(branch),
            _ => self.orders(),
        }
    }

    /// Draws an answer to something that waits, or a message if nothing waits.
    fn decides(&mut self, seen: &Inspection) -> Message {
        let dice = &mut self.dice;
        let asked = seen.pending.iter().filter(|p| p.kind.is_asked());
        let asked: Vec<&Pending> = asked.collect();
        let Some(pending) = dice.pick(&asked) else {
            return said("Anything?", None, None);
        };
        // One in ten orders comes from a person who may not decide.
        let role = pending.roles.first().filter(|_| !dice.percent(10));
        let by: Name = role.cloned().unwrap_or_else(|| "user".into());
        let of = pending.id();
        match (pending.kind, dice.below(4)) {
            (PendingKind::Doubt, n) => {
                let how = match n {
                    0 => Resolution::Done {
                        result: "\"it is done\"".to_owned(),
                    },
                    1 => Resolution::NotPerformed,
                    _ => Resolution::Fail,
                };
                Wanted::Resolve { of, how }.by(by)
            }
            (PendingKind::Question | PendingKind::Input, 1..) => {
                let sealed = self.stage.sealer.seal_text("1");
                Wanted::Answer { of, sealed }.by(by)
            }
            (_, 0) => {
                let reason = dice.percent(50).then(|| "Not now.".to_owned());
                Wanted::Reject { of, reason }.by(by)
            }
            (PendingKind::Approval, 1) => {
                let args = if dice.percent(50) {
                    "{}"
                } else {
                    "{\"cents\":7}"
                };
                let args = Some(args.to_owned());
                Wanted::Approve { of, args }.by(by)
            }
            _ => Wanted::Approve { of, args: None }.by(by),
        }
    }

    fn cancels(&mut self, branch: Option<Id>) -> Message {
        let dice = &mut self.dice;
        let agent = dice.pick(&self.known.agents).copied();
        let effect = dice.pick(&self.known.effects).copied();
        let what = match (dice.below(6), agent, effect) {
            (0, ..) => CancelWhat::Session,
            (1 | 2, Some(agent), _) => CancelWhat::Agent(agent),
            (3 | 4, _, Some(effect)) => CancelWhat::Effect(effect),
            _ => CancelWhat::Branch,
        };
        Wanted::Cancel(what).by("user").on(branch)
    }

    fn orders(&mut self) -> Message {
        let dice = &mut self.dice;
        let by: Name = "user".into();
        let tools = [None, Some("mail"), Some("pay")];
        let tool = dice.pick(&tools).copied().flatten().map(Name::from);
        match dice.below(8) {
            0 => Message::from(Wanted::Pause(true)),
            1 | 2 => Message::from(Wanted::Pause(false)),
            3 => {
                let held = true;
                Wanted::Hold { tool, held }.by(by)
            }
            4 => {
                let held = false;
                Wanted::Hold { tool, held }.by(by)
            }
            5 => {
                let effect = dice.pick(&self.known.effects).copied();
                let effect = effect.filter(|_| dice.percent(50));
                Wanted::Retry(effect).by(by)
            }
            _ => {
                let value = dice.percent(70).then(|| dice.below(9).to_string());
                let writes = vec![("other".into(), value)];
                Wanted::Edit(writes).by(by)
            }
        }
    }
}

impl Known {
    async fn look(&mut self, engine: &Engine) {
        if self.branches.is_empty() {
            self.branches.push(Id::MAIN);
        }
        let mut feed = engine.feed(SESSION, self.cursor);
        for line in feed.lines().await.unwrap() {
            self.cursor = line.n;
            self.lines.push((line.n, line.branch));
            for entry in &line.ledger {
                match entry {
                    LedgerEntry::Opened { branch, .. } => self.branches.push(*branch),
                    LedgerEntry::Current(branch) => self.current = Some(*branch),
                    LedgerEntry::Paused { paused, .. } => self.paused = *paused,
                    _ => {}
                }
            }
            if let Some(commit) = &line.commit {
                self.agents
                    .extend(commit.made.iter().map(|made| made.agent));
                self.effects
                    .extend(commit.wished.iter().map(|wished| wished.id));
            }
        }
    }
}

fn said(text: &str, to: Option<Id>, branch: Option<Id>) -> Message {
    Wanted::Say {
        text: text.to_owned(),
        to,
    }
    .on(branch)
}

fn speaks(dice: &mut Dice, branch: Option<Id>, agents: &[Id]) -> Message {
    match dice.below(6) {
        0 => said("You there.", dice.pick(agents).copied(), branch),
        1 => Wanted::Interrupt("Stop, and do this.".to_owned()).on(branch),
        _ => said("And?", None, branch),
    }
}

fn searches(dice: &mut Dice, worth: &str, branch: Option<Id>) -> Message {
    if dice.percent(30) {
        return Message::from(Wanted::StopSearch(None));
    }
    let methods = [Method::BestOf, Method::Beam, Method::Rollouts, Method::Mcts];
    let method = *dice.pick(&methods).unwrap();
    let plan = Plan {
        score: Some(Scorer::Expr(Expr::parse(worth).unwrap())),
        live: dice.percent(50),
        ..Plan::of(method, 1 + dice.below(2) as u32)
    };
    Wanted::Search {
        at: None,
        say: dice.percent(50).then(|| "Seek.".to_owned()),
        plan: plan.to_json().to_string(),
    }
    .on(branch)
}

/// Returns a message with a content, which the engine keeps first.
async fn brings(engine: &Engine, branch: Option<Id>) -> Message {
    let content = Content {
        name: "letter.txt".to_owned(),
        media: "text/plain".to_owned(),
        bytes: b"Dear all.".as_slice().into(),
    };
    engine.keep(std::slice::from_ref(&content)).await.unwrap();
    said("Read this.", None, branch).with(&[content])
}

/// The network of `rich.yaml`.
fn rich() -> Arc<Network> {
    let (network, found) = compile(&Files::new("rich.yaml", include_str!("rich.yaml")));
    Arc::new(network.unwrap_or_else(|| panic!("{found:?}")))
}
