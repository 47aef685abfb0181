//! States in Rust: one object a state, whose work is streamed, recorded and retried by its class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use steersman::machine::stored::ids::{Id, Line};
use steersman::runtime::Boxed;
use steersman::runtime::store::layer::Layer;
use steersman::runtime::store::memory::MemoryStore;
use steersman::runtime::store::{Batch, Claim, Log as _, Store, StoreError};
use steersman::{
    By, Cursor, Does, Ended, Event, EventKind, Fork, NetView, Network, Next, NoWork, Rerun,
    Resolution, Session, Setup, State, States, Steersman, Tool, ToolContext, ToolError, Turn,
    agent, tool,
};
use tokio::sync::Semaphore;

/// What the works have done in the world, over all processes.
type Done = Arc<Mutex<Vec<String>>>;

fn done(world: &Done) -> Vec<String> {
    world.lock().unwrap().clone()
}

/// A state of the stub net of a brain: it says its name and how often it ran before.
struct Stub {
    name: &'static str,
    class: fn(Tool) -> Tool,
    after: fn(&Ended<'_>) -> Next,
    world: Done,
    /// What it said must be heard before it goes on.
    heard: Option<Arc<Semaphore>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nth {
    nth: Option<u32>,
}

impl State for Stub {
    type Input = Nth;

    fn name(&self) -> &str {
        self.name
    }

    fn enter(&self, view: &NetView<'_>) -> Does<Nth> {
        let nth = (self.name != "answer").then(|| view.steps_of(self.name));
        Does::Run(Nth { nth })
    }

    async fn run(&self, Nth { nth }: Nth, cx: ToolContext) -> Result<String, ToolError> {
        let text = nth.map_or_else(
            || self.name.to_owned(),
            |nth| format!("{} {nth}", self.name),
        );
        self.world.lock().unwrap().push(text.clone());
        let (first, rest) = text.split_at(3);
        cx.say(first);
        tokio::task::yield_now().await;
        cx.say(rest);
        if let Some(heard) = &self.heard {
            heard.acquire().await.unwrap().forget();
        }
        Ok(text)
    }

    fn next(&self, _: &NetView<'_>, ended: &Ended<'_>) -> Next {
        if ended.ok {
            (self.after)(ended)
        } else {
            Next::fail(ended.text)
        }
    }

    fn work(&self, tool: Tool) -> Tool {
        (self.class)(tool)
    }
}

/// The stub net: reasoning, action, reasoning, answer.
fn stub(world: &Done, class: fn(Tool) -> Tool, heard: Option<&Arc<Semaphore>>) -> Network {
    let state = |name, class, after| Stub {
        name,
        class,
        after,
        world: world.clone(),
        heard: heard.cloned(),
    };
    let states = States::new(1)
        .state(state("reasoning", Tool::read, |ended| match ended.times {
            1 => Next::to("action"),
            _ => Next::to("answer"),
        }))
        .state(state("action", class, |_| Next::to("reasoning")))
        .state(state("answer", Tool::pure, |ended| {
            Next::answer(ended.text)
        }));
    Network::builder("brain")
        .states("stub", states)
        .agent(agent("brain").system("You are a brain.").key("net", "stub"))
        .entry("brain")
        .build()
        .unwrap()
}

/// A process in which no model may be asked.
fn no_model() -> Setup {
    Steersman::options().script_all("{}")
}

const SAID: [&str; 4] = ["reasoning 0", "action 0", "reasoning 1", "answer"];

fn answer(turn: &Turn) -> &str {
    match turn {
        Turn::Answer(answer) => answer.text(),
        other => panic!("{other:?}"),
    }
}

/// The texts that were shown while they were made, by effect, and the ends of calls and the states of the log.
#[derive(Default, Debug, PartialEq)]
struct Told {
    pieces: Vec<(Id, String)>,
    withdrawn: usize,
    ended: Vec<String>,
    entered: Vec<String>,
}

impl Told {
    fn hear(&mut self, event: Event) {
        match event.kind {
            EventKind::Piece { effect, text, .. } => match self.pieces.last_mut() {
                Some((of, before)) if *of == effect => before.push_str(&text),
                _ => self.pieces.push((effect, text)),
            },
            EventKind::Withdrawn { .. } => self.withdrawn += 1,
            EventKind::Ended { text, .. } => self.ended.push(text.to_string()),
            EventKind::Entered { state } => self.entered.push(state.to_string()),
            _ => {}
        }
    }
}

/// Asks and hears what is said. `heard` is told of each text of the stub net that was heard.
async fn asked(session: &Session, text: &str, heard: Option<&Semaphore>) -> (Told, Turn) {
    let mut events = session.ask_streaming(text).await.unwrap();
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        let is_piece = matches!(event.kind, EventKind::Piece { .. });
        told.hear(event);
        let newest = told.pieces.last().map(|(_, text)| &**text);
        if let (true, Some(heard), Some(newest)) = (is_piece, heard, newest)
            && SAID.contains(&newest)
        {
            heard.add_permits(1);
        }
    }
    (told, session.settled().await.unwrap())
}

#[tokio::test]
async fn a_stub_net_streams_its_chunks_and_gives_the_same_when_it_runs_again() {
    let world = Done::default();
    let heard = Arc::new(Semaphore::new(0));
    let network = stub(&world, Tool::idempotent, Some(&heard));
    let steersman = no_model().in_memory();
    let session = steersman.start(&network).await.unwrap();
    for question in ["One?", "Two?"] {
        let (told, turn) = asked(&session, question, Some(&heard)).await;
        assert_eq!(answer(&turn), "answer");
        let pieces: Vec<&str> = told.pieces.iter().map(|(_, text)| &**text).collect();
        assert_eq!(pieces, SAID);
        assert_eq!(told.ended, SAID);
        assert_eq!(told.entered, ["reasoning", "action", "reasoning", "answer"]);
    }
    assert_eq!(done(&world), [SAID, SAID].concat());
}

/// A store whose process dies behind a line.
pub(crate) struct Mortal {
    pub(crate) inner: MemoryStore,
    /// The last line that it takes.
    pub(crate) last: AtomicU64,
}

impl Layer for Mortal {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let last = self.last.load(Ordering::SeqCst);
        if batch.rows.last().is_some_and(|row| row.n.0 > last) {
            return Box::pin(async move {
                Err(StoreError::Io {
                    place: "the test".into(),
                    source: Arc::new(std::io::Error::other("the process was killed")),
                })
            });
        }
        self.inner.append(claim, batch)
    }
}

/// Plays the stub net in a process that dies behind this line, and in another one to its end. Returns false if the first process
/// came to the end.
async fn dies_behind(line: u64, (class, may_repeat): (fn(Tool) -> Tool, bool)) -> bool {
    let world = Done::default();
    let store = Arc::new(Mortal {
        inner: MemoryStore::new(),
        last: AtomicU64::new(line),
    });
    let process = || {
        let steersman = no_model().over_shared(store.clone(), &[1; 32]);
        let network = stub(&world, class, None);
        steersman.register(&network);
        (steersman, network)
    };
    let (steersman, network) = process();
    let session = steersman.start(&network).await.unwrap();
    let id = session.id().to_owned();
    let told = session.say("One?").await;
    let ended = session.settled().await;
    steersman.engine().kill().await;
    store.last.store(u64::MAX, Ordering::SeqCst);
    let (steersman, _) = process();
    let session = steersman.session(&id).await.unwrap();
    let died = ended.is_err();
    if told.is_err() {
        session.say("One?").await.unwrap();
    }
    let mut turn = session.settled().await.unwrap();
    if let Turn::Asks(questions) = &turn {
        // The world says whether it happened.
        let happened = done(&world).contains(&"action 0".to_owned());
        let how = if happened {
            Resolution::Done {
                result: "\"action 0\"".to_owned(),
            }
        } else {
            Resolution::NotPerformed
        };
        session
            .resolve(&questions[0], how, By::user())
            .await
            .unwrap();
        turn = session.settled().await.unwrap();
    }
    assert_eq!(answer(&turn), "answer", "behind {line}");
    let mut events = session.events(Cursor::START).until_settled();
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        told.hear(event.unwrap());
    }
    assert_eq!(told.ended, SAID, "behind {line}");
    assert_eq!(
        told.entered,
        ["reasoning", "action", "reasoning", "answer"],
        "behind {line}"
    );
    let acted = done(&world)
        .iter()
        .filter(|did| **did == "action 0")
        .count();
    assert!(acted == 1 || may_repeat, "behind {line}");
    died
}

#[tokio::test]
async fn a_stub_net_that_is_killed_behind_any_line_ends_as_if_it_were_not() {
    type Class = fn(Tool) -> Tool;
    let classes: [(Class, bool); 3] = [
        (Tool::read, true),
        (Tool::idempotent, true),
        (Tool::unsafe_, false),
    ];
    for class in classes {
        let mut line = 1;
        while dies_behind(line, class).await {
            line += 1;
        }
        assert!(line > 5, "{line} lines");
    }
}

/// A state made of closures.
struct Plain<I, E, N> {
    name: &'static str,
    enter: E,
    next: N,
    of: std::marker::PhantomData<fn(I)>,
}

fn plain<E, N>(name: &'static str, enter: E, next: N) -> Plain<NoWork, E, N>
where
    E: Fn(&NetView<'_>) -> Does<NoWork> + Send + Sync + 'static,
    N: Fn(&Ended<'_>) -> Next + Send + Sync + 'static,
{
    Plain {
        name,
        enter,
        next,
        of: std::marker::PhantomData,
    }
}

impl<E, N> State for Plain<NoWork, E, N>
where
    E: Fn(&NetView<'_>) -> Does<NoWork> + Send + Sync + 'static,
    N: Fn(&Ended<'_>) -> Next + Send + Sync + 'static,
{
    type Input = NoWork;
    fn name(&self) -> &str {
        self.name
    }
    fn enter(&self, view: &NetView<'_>) -> Does<NoWork> {
        (self.enter)(view)
    }
    fn next(&self, _: &NetView<'_>, ended: &Ended<'_>) -> Next {
        (self.next)(ended)
    }
}

/// Work whose end and exit a test decides.
struct Work<R> {
    run: R,
    left: Done,
    class: fn(Tool) -> Tool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Of {
    text: String,
}

impl<R, F> State for Work<R>
where
    R: Fn(String, ToolContext) -> F + Send + Sync + 'static,
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    type Input = Of;
    fn name(&self) -> &'static str {
        "work"
    }
    fn enter(&self, view: &NetView<'_>) -> Does<Of> {
        let said = view.said().unwrap_or_else(|| view.message());
        Does::Run(Of {
            text: said.to_string(),
        })
    }
    async fn run(&self, of: Of, cx: ToolContext) -> Result<String, ToolError> {
        (self.run)(of.text, cx).await
    }
    async fn exit(&self, cx: &ToolContext) -> Result<(), ToolError> {
        let mut left = self.left.lock().unwrap();
        left.push(format!("left in attempt {}", cx.attempt()));
        Ok(())
    }
    fn next(&self, _: &NetView<'_>, ended: &Ended<'_>) -> Next {
        let code = ended.code.unwrap_or("-");
        Next::answer(format!("{} {code} {}", ended.ok, ended.text))
    }
    fn work(&self, tool: Tool) -> Tool {
        (self.class)(tool)
    }
}

fn works<R, F>(run: R, class: fn(Tool) -> Tool) -> (Network, Done)
where
    R: Fn(String, ToolContext) -> F + Send + Sync + 'static,
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    let left = Done::default();
    let work = Work {
        run,
        left: left.clone(),
        class,
    };
    let network = Network::builder("desk")
        .states("works", States::new(1).state(work))
        .agent(agent("desk").system("You work.").key("net", "works"))
        .entry("desk");
    (network.build().unwrap(), left)
}

#[tokio::test]
async fn work_is_retried_by_its_class_and_what_it_said_is_withdrawn() {
    let run = |text: String, cx: ToolContext| async move {
        cx.say(format!("attempt {}", cx.attempt()));
        match cx.attempt() {
            1 => Err(ToolError::not_performed("it is busy").retry_after(1)),
            _ => Ok(text),
        }
    };
    let (network, left) = works(run, |tool| tool.read().key("retry", 2));
    let steersman = no_model().in_memory();
    let session = steersman.start(&network).await.unwrap();
    let (told, turn) = asked(&session, "Go.", None).await;
    assert_eq!(answer(&turn), "true - Go.");
    assert_eq!(told.withdrawn, 1);
    assert!(
        told.pieces
            .iter()
            .any(|(_, text)| text.ends_with("attempt 2")),
        "{told:?}"
    );
    assert_eq!(done(&left), ["left in attempt 1", "left in attempt 2"]);
}

#[tokio::test]
async fn a_panic_in_the_work_is_an_end_that_the_state_hears() {
    let run = |text: String, _| async move {
        assert_ne!(text, "Go.", "out of order");
        Ok(text)
    };
    let (network, left) = works(run, Tool::read);
    let session = no_model().in_memory().start(&network).await.unwrap();
    let turn = session.ask("Go.").await.unwrap();
    let said = answer(&turn);
    assert!(said.starts_with("false panicked "), "{said}");
    assert!(said.contains("out of order"), "{said}");
    assert!(done(&left).is_empty(), "a panic skips the exit");
    let turn = session.ask("Stay.").await.unwrap();
    assert_eq!(answer(&turn), "true - Stay.");
}

/// The work records steps; a person approves it first; and it may be forked, rewound and rerun.
#[tokio::test]
async fn work_is_approved_and_forked_and_rerun_like_a_call() {
    let steps = Done::default();
    let its = steps.clone();
    let run = move |text: String, cx: ToolContext| {
        let its = its.clone();
        async move {
            let step = async {
                its.lock().unwrap().push(text.clone());
                Ok::<_, ToolError>(format!("{text} is done"))
            };
            cx.step("does", step).await
        }
    };
    let (network, _) = works(run, |tool| tool.unsafe_().approve("args.text != 'free'"));
    let steersman = no_model().in_memory();
    let session = steersman.start(&network).await.unwrap();
    session.say("Pay.").await.unwrap();
    let Turn::Asks(questions) = session.settled().await.unwrap() else {
        panic!("a person decides");
    };
    assert!(done(&steps).is_empty());
    session.approve(&questions[0], By::user()).await.unwrap();
    let turn = session.settled().await.unwrap();
    assert_eq!(answer(&turn), "true - Pay. is done");
    assert_eq!(done(&steps), ["Pay."]);

    // A call that is open where a branch begins is not made on the branch, and its state hears of that.
    let fork = Fork {
        at: Some(Line(2)),
        live: true,
        ..Fork::default()
    };
    let branch = session.fork(fork).await.unwrap();
    let mut events = session.events(Cursor::START);
    let told = loop {
        let event = events.next().await.unwrap().unwrap();
        match event.kind {
            EventKind::Finished { text, .. } if event.branch == branch => break text,
            _ => {}
        }
    };
    assert!(told.starts_with("false not_in_this_branch "), "{told}");
    assert_eq!(done(&steps), ["Pay."], "nothing is done twice");

    // A rerun takes the recorded end.
    let of_main = Rerun {
        branch: Some(Id::MAIN),
        ..Rerun::default()
    };
    let rerun = steersman.rerun(session.id(), of_main).await.unwrap();
    assert!(rerun.diverged.is_none(), "{rerun:?}");
    let again = steersman.session(&rerun.session).await.unwrap();
    let turn = again.settled().await.unwrap();
    assert_eq!(answer(&turn), "true - Pay. is done");
    assert_eq!(done(&steps), ["Pay."]);
}

#[tokio::test]
async fn a_state_asks_the_model_and_calls_tools_that_the_model_may_not_call() {
    #[derive(Deserialize, JsonSchema)]
    struct Find {
        what: String,
    }
    let find = tool("find", 1, |find: Find| async move {
        Ok::<_, String>(format!("{} is on page 7", find.what))
    });
    let states = States::new(1)
        .state(plain(
            "plan",
            |_| Does::ask("Name what to find."),
            |_| Next::to("look"),
        ))
        .state(plain(
            "look",
            |view| Does::call("find", json!({ "what": view.said() })),
            |_| Next::to("tell"),
        ))
        .state(plain(
            "tell",
            |_| Does::Ask(None),
            |ended| Next::answer(ended.text),
        ));
    let network = Network::builder("desk")
        .tool(find.read().describe("Finds."))
        .states("finds", states)
        .agent(agent("desk").system("You find.").key("net", "finds"))
        .entry("desk")
        .build()
        .unwrap();
    let session = Steersman::options()
        .script_all("desk: [ kettles, \"{{ request.last }}\" ]")
        .in_memory()
        .start(&network)
        .await
        .unwrap();
    let turn = session.ask("Where?").await.unwrap();
    assert_eq!(answer(&turn), "[find] kettles is on page 7");
}

#[test]
fn mistakes_are_named() {
    let no_states = Network::builder("desk")
        .states("none", States::new(1))
        .agent(agent("desk").system("You work.").key("net", "none"))
        .entry("desk");
    assert_eq!(
        no_states.build().unwrap_err().in_rust,
        ["the net `none` has no states"]
    );
    let two = || plain("ask", |_| Does::Ask(None), |_| Next::to("ask"));
    let states = States::new(1).state(two()).state(two()).last("end");
    let twice = Network::builder("desk")
        .states("two", states)
        .agent(agent("desk").system("You work.").key("net", "two"))
        .entry("desk");
    assert_eq!(
        twice.build().unwrap_err().in_rust,
        [
            "the net `two` has two states `ask`",
            "the last state of the net `two` is `end`, and its states are ask, ask"
        ]
    );
    let world = Done::default();
    let state = Stub {
        name: "reasoning",
        class: Tool::read,
        after: |_| Next::to("reasoning"),
        world,
        heard: None,
    };
    let undeclared = Network::from_yaml("agents: { brain: { system: You reason., net: stub } }")
        .states("stub", States::new(1).state(state));
    assert_eq!(
        undeclared.build().unwrap_err().in_rust,
        [
            "tool `reasoning` is registered in Rust and not declared: add `reasoning: { native: 1 }` under `tools:`"
        ]
    );
}
