//! An engine over stores, models and tools that a test controls. No sleep, no real time.

use crate::spy::Spy;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use steersman_definition::{self as definition, Files};
use steersman_machine::network::Network;
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::stored::commit::{LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Line, Time};
use steersman_machine::trace;
use steersman_machine::trace::{Sync, Trace};
use steersman_machine::values::expression::Template;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Durability, Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::pending::PendingId;
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::toolset::{Asked, ListMark, ServerAsk, ToolRun, Toolset};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Monday noon.
pub(crate) const NOON: Time = Time(1_767_614_400_000);

/// The next action of a tool.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Done(Json),
    NotPerformed(Fault),
    Unknown,
    Hangs,
    /// Runs until it is cancelled, and ends as not performed.
    Cut,
    Panics,
    /// Changes the tools of its server to these and says so, then is done.
    Changes(Vec<Listed>),
    /// Waits until the test opens the gate, then is done.
    Gate(Arc<Semaphore>, Json),
    /// Waits until the test opens the gate, then ends with this.
    Ends(Arc<Semaphore>, Raw),
}

/// Tools that do what a test tells them, and record their runs.
pub(crate) struct Tools {
    next: Mutex<BTreeMap<String, VecDeque<Does>>>,
    always: Mutex<BTreeMap<String, Json>>,
    runs: Mutex<Vec<(String, String, u32, Json)>>,
    passwords: Mutex<Vec<String>>,
    /// The offer of every MCP server, and the mark that changes with it.
    offers: Mutex<(Option<Asked>, ListMark)>,
    asked: AtomicUsize,
    cut: AtomicUsize,
}

impl Tools {
    /// Number of runs of `Does::Cut` that were cancelled and have ended.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::SeqCst)
    }

    /// Sets the offer of every MCP server. With `another`, a new server takes the place of the old one; otherwise the server
    /// announces the change.
    pub(crate) fn offers(&self, asked: Asked, another: bool) {
        let mut offers = self.offers.lock().unwrap();
        offers.0 = Some(asked);
        if another {
            offers.1 = ListMark {
                connection: offers.1.connection + 1,
                changes: 0,
            };
        } else {
            offers.1.changes += 1;
        }
    }

    /// Number of times that a server was asked for its offer.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn will(&self, tool: &str, does: Does) {
        let mut next = self.next.lock().unwrap();
        next.entry(tool.to_owned()).or_default().push_back(does);
    }

    /// Sets the result of a tool for runs that have no action of their own.
    pub(crate) fn always(&self, tool: &str, gives: Json) {
        let mut always = self.always.lock().unwrap();
        always.insert(tool.to_owned(), gives);
    }

    /// Tool, key and attempt of all runs so far.
    pub(crate) fn runs(&self) -> Vec<(String, String, u32)> {
        let runs = self.runs.lock().unwrap();
        runs.iter()
            .map(|(tool, key, attempt, _)| (tool.clone(), key.clone(), *attempt))
            .collect()
    }

    /// Number of runs of a tool.
    pub(crate) fn count(&self, tool: &str) -> usize {
        self.runs().iter().filter(|(t, ..)| t == tool).count()
    }

    /// Values of `args.password`, of all runs that had one.
    pub(crate) fn passwords(&self) -> Vec<String> {
        self.passwords.lock().unwrap().clone()
    }

    pub(crate) fn args(&self, tool: &str) -> Vec<Json> {
        let runs = self.runs.lock().unwrap();
        let of_tool = runs.iter().filter(|(t, ..)| t == tool);
        of_tool.map(|(_, _, _, args)| args.clone()).collect()
    }
}

impl Default for Tools {
    fn default() -> Self {
        let mark = ListMark {
            connection: 1,
            changes: 0,
        };
        Self {
            next: Mutex::default(),
            always: Mutex::default(),
            runs: Mutex::default(),
            passwords: Mutex::default(),
            offers: Mutex::new((None, mark)),
            asked: AtomicUsize::default(),
            cut: AtomicUsize::default(),
        }
    }
}

impl Toolset for Tools {
    fn has(&self, _network: &Network, _tool: &str) -> bool {
        true
    }

    fn has_native(&self, _name: &str, _version: &str) -> bool {
        true
    }

    fn list<'a>(&'a self, _: &'a ServerAsk) -> Boxed<'a, Asked> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let asked = self.offers.lock().unwrap().0.clone();
        Box::pin(std::future::ready(asked.unwrap_or(Asked::Elsewhere)))
    }

    fn mark(&self, _: &ServerAsk) -> Option<ListMark> {
        Some(self.offers.lock().unwrap().1)
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let tool = run.work.tool.to_string();
            let key = format!("{}/{:x}/{}", run.session, run.mark, run.effect);
            let args = serde_json::from_str(&run.work.args).unwrap();
            self.runs
                .lock()
                .unwrap()
                .push((tool.clone(), key, run.attempt, args));
            let password = Template::parse("{{ args.password }}").unwrap();
            if let Ok(password) = password.render(&*run.scope) {
                self.passwords.lock().unwrap().push(password);
            }
            let does = {
                let mut next = self.next.lock().unwrap();
                next.get_mut(&tool).and_then(VecDeque::pop_front)
            };
            match does {
                None => {
                    let always = self.always.lock().unwrap().get(&tool).cloned();
                    Raw::Done(always.unwrap_or_else(|| json!(format!("{tool} is done"))))
                }
                Some(Does::Done(json)) => Raw::Done(json),
                Some(Does::NotPerformed(fault)) => Raw::NotPerformed(fault),
                Some(Does::Unknown) => Raw::Unknown(Fault::new("failed", "the line broke")),
                Some(Does::Hangs) => std::future::pending().await,
                Some(Does::Cut) => {
                    cancel.cancelled().await;
                    self.cut.fetch_add(1, Ordering::SeqCst);
                    Raw::NotPerformed(Fault::new("cancelled", "it was told to end"))
                }
                Some(Does::Panics) => panic!("the tool is broken"),
                Some(Does::Changes(tools)) => {
                    let about = "server 1".to_owned();
                    self.offers(Asked::Offers(Listing { about, tools }), false);
                    Raw::Done(json!("changed"))
                }
                Some(Does::Gate(gate, json)) => {
                    gate.acquire().await.unwrap().forget();
                    Raw::Done(json)
                }
                Some(Does::Ends(gate, raw)) => {
                    gate.acquire().await.unwrap().forget();
                    raw
                }
            }
        })
    }
}

/// An engine with its ports.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Spy,
    pub(crate) clock: Virtual,
    pub(crate) model: ScriptedModel,
    pub(crate) tools: Arc<Tools>,
}

impl World {
    pub(crate) fn new(script: Json) -> Self {
        Self::over(Spy::default(), Durability::Commit, script)
    }

    /// A world over a store of the test's choice.
    pub(crate) fn over(store: Spy, durability: Durability, script: Json) -> Self {
        let model = ScriptedModel::new(Script::parse(&script).unwrap());
        let options = Options {
            durability,
            ..Options::default()
        };
        Self::of(store, Virtual::at(NOON), model, Arc::default(), options)
    }

    /// A world in which nobody can be asked.
    pub(crate) fn unattended(script: Json) -> Self {
        let model = ScriptedModel::new(Script::parse(&script).unwrap());
        let (store, clock) = (Spy::default(), Virtual::at(NOON));
        let options = Options {
            user_reachable: false,
            ..Options::default()
        };
        Self::of(store, clock, model, Arc::default(), options)
    }

    /// Another engine over the same store: a process that was started again.
    pub(crate) fn again(&self) -> Self {
        Self::of(
            self.store.clone(),
            self.clock.clone(),
            self.model.clone(),
            self.tools.clone(),
            Options::default(),
        )
    }

    fn of(
        store: Spy,
        clock: Virtual,
        model: ScriptedModel,
        tools: Arc<Tools>,
        options: Options,
    ) -> Self {
        let engine = Engine::new(Parts {
            store: Arc::new(store.clone()),
            clock: Arc::new(clock.clone()),
            models: Arc::new(model.clone()),
            toolsets: vec![tools.clone()],
            sealer: Sealer::new(&[7; 32]),
            options: Options {
                env: Arc::new(|_| None),
                ..options
            },
        });
        Self {
            engine,
            store,
            clock,
            model,
            tools,
        }
    }

    pub(crate) async fn start(&self, definition: &str, say: &str) -> Session {
        let options = StartOptions {
            id: Some("session".into()),
            say: Some(say.to_owned()),
            message_id: Some("m1".into()),
            seed: Some(1),
            ..StartOptions::default()
        };
        let network = network(definition);
        self.engine.start(network, options).await.unwrap()
    }

    /// Kills the engine without a stop, and returns another one over the same store.
    pub(crate) async fn killed(self) -> Self {
        self.engine.kill().await;
        self.store.mend();
        self.again()
    }

    /// Opens the session in this process.
    pub(crate) async fn open(&self) -> Session {
        self.engine.open("session").await.unwrap()
    }

    /// All lines on disk.
    pub(crate) async fn lines(&self) -> Vec<Arc<LogLine>> {
        let mut feed = self.engine.feed("session", Line::NONE);
        feed.lines().await.unwrap()
    }

    /// All lines on disk as traces print them.
    pub(crate) async fn printed(&self) -> String {
        let lines = self.lines().await;
        let seen = self.engine.inspect("session").await.unwrap();
        let mut trace = Trace::default();
        // Ids of messages are random; they are named in the order in which they were accepted.
        let ids: Vec<String> = lines
            .iter()
            .flat_map(|line| &line.ledger)
            .filter_map(|entry| match entry {
                LedgerEntry::Accepted { message, .. } => Some(message.to_string()),
                _ => None,
            })
            .collect();
        let printed: String = lines
            .iter()
            .map(|line| {
                let sync = if self.store.urgent(line.n) {
                    Sync::Before
                } else {
                    Sync::Ahead
                };
                trace.line(line, &*seen.history, Some(sync))
            })
            .collect();
        ids.iter().enumerate().fold(printed, |text, (k, id)| {
            text.replace(id, &format!("m{}", k + 1))
        })
    }

    /// The letters of an agent's stack on the current branch.
    pub(crate) async fn stack(&self, agent: &str) -> String {
        let seen = self.engine.inspect("session").await.unwrap();
        let branch = seen.current_branch().unwrap();
        let found = branch.snapshot.agents.values().find(|a| *a.def == *agent);
        let stack = seen.stack(branch, found.unwrap().id);
        let pushes: Vec<_> = stack.into_iter().map(|(_, what)| what).collect();
        trace::letters(&pushes)
    }
}

/// Compiles a definition. Panics with its diagnostics.
pub(crate) fn network(text: &str) -> Arc<Network> {
    let text = format!("steersman: 1\nname: test\nmodels: {{ default: scripted }}\n{text}");
    let (network, found) = definition::compile(&Files::new("test.yaml", text));
    Arc::new(network.unwrap_or_else(|| {
        let found: Vec<String> = found.iter().map(|d| format!("{d:?}")).collect();
        panic!("{}", found.join("\n"))
    }))
}

/// Returns the text of an answer. Panics if there is none.
pub(crate) fn answered(settled: &Settled) -> String {
    match settled {
        Settled::Answered { text, .. } => text.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns the first question or doubt.
pub(crate) fn asked(settled: &Settled) -> PendingId {
    match settled {
        Settled::Asks(pending) | Settled::Doubt(pending) => pending[0].id(),
        other => panic!("{other:?}"),
    }
}
