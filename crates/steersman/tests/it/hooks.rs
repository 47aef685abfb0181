//! Hooks in Rust: what they change is in the log before it is used, and the log answers in their place.

use crate::states::Mortal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use steersman::machine::context::Content;
use steersman::machine::stored::commit::{Commit, Hooked, LogLine, Moment};
use steersman::machine::stored::ids::Bodies;
use steersman::runtime::store::memory::MemoryStore;
use steersman::views::context::{Context, Contexts};
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{Hook, HookAt, Network, Rerun, Setup, Steersman, TextOf, Turn, agent, hook, tool};

/// What hooks were asked, over all processes: the moment and what identifies the question.
type Asked = Arc<Mutex<Vec<(Moment, String)>>>;

#[derive(Deserialize, JsonSchema)]
struct Pay {
    to: String,
    cents: u64,
}

/// A hook that changes something at each moment.
fn marks(asked: &Asked) -> Hook {
    let asked = asked.clone();
    let note = move |at: &HookAt, what: String| asked.lock().unwrap().push((at.moment, what));
    let [sent, said, given, got, last] = [(); 5].map(|()| note.clone());
    hook("marks", 1)
        .before_model(move |at, request| {
            sent(at, at.effect.unwrap().to_string());
            for text in request.texts_mut().filter(|text| text.of() == TextOf::User) {
                text.text = text.text.replace("4111", "[card]");
            }
            request.add("Be brief.");
            Ok(())
        })
        .after_model(move |at, answer| {
            said(at, format!("{:?}", answer.text));
            if let Some(text) = &mut answer.text {
                text.push_str(" (checked)");
            }
            answer.calls.retain(|call| call.args["to"] != "eve");
            Ok(())
        })
        .before_call(move |at, args| {
            assert_eq!(at.tool.as_deref(), Some("pay"));
            given(at, Json::Object(args.clone()).to_string());
            args.insert("cents".to_owned(), json!(50));
            Ok(())
        })
        .after_call(move |at, result| {
            assert_eq!(at.args, Some(json!({ "to": "anna", "cents": 50 })));
            got(at, result.clone());
            result.push_str(" [seen]");
            Ok(())
        })
        .on_finish(move |at, answer| {
            assert_eq!(&*at.agent, "desk");
            last(at, answer.clone());
            answer.push('!');
            Ok(())
        })
}

/// The guard allows only what the hook gives.
const DEFINITION: &str = "
name: desk
tools:
  pay:
    native: 1
    description: Pays.
    parameters: { to: string, cents: integer }
    effect: idempotent
    requires: args.cents <= 100
agents: { desk: { description: Pays., system: You pay., tools: [pay] } }
hooks: { marks: { native: 1 } }
";

const SCRIPT: &str = "
desk:
  - call: [ { pay: { to: anna, cents: 500 } }, { pay: { to: eve, cents: 1 } } ]
  - Paid.
";

fn paying(asked: &Asked, paid: &Arc<Mutex<Vec<String>>>) -> Network {
    let paid = paid.clone();
    let pay = tool("pay", 1, move |pay: Pay| {
        paid.lock()
            .unwrap()
            .push(format!("{} {}", pay.to, pay.cents));
        async move { Ok::<_, String>(format!("{} got {}", pay.to, pay.cents)) }
    });
    Network::from_yaml(DEFINITION)
        .tool(pay.idempotent())
        .hook(marks(asked))
        .build()
        .unwrap()
}

fn setup() -> Setup {
    Steersman::options().script_all(SCRIPT)
}

fn answer(turn: &Turn) -> &str {
    match turn {
        Turn::Answer(answer) => answer.text(),
        other => panic!("{other:?}"),
    }
}

async fn log(steersman: &Steersman, id: &str) -> Log {
    Log::read(&Stored::plain(steersman.engine(), id))
        .await
        .unwrap()
}

fn hooked(lines: &[Arc<LogLine>]) -> Vec<(u64, Hooked)> {
    let commits = lines
        .iter()
        .filter_map(|line| Some((line.n.0, line.commit.as_ref()?)));
    commits
        .flat_map(|(n, commit)| Commit::hooked(commit).map(move |hooked| (n, hooked.clone())))
        .collect()
}

async fn contexts(steersman: &Steersman, id: &str) -> Vec<Context> {
    let reader = Stored::plain(steersman.engine(), id);
    let log = Log::read(&reader).await.unwrap();
    let seen = steersman.engine().inspect(id).await.unwrap();
    let path = log.history(seen.current_branch().unwrap(), &seen.branches);
    let contexts = Contexts::of(&reader, &log, &path).await.unwrap();
    let mut all = Vec::new();
    for call in contexts.calls() {
        all.push(contexts.context(call).await.unwrap());
        // Why each part is there can be told of a changed request, too.
        let why = contexts.explain(call).await.unwrap();
        assert_eq!(why.segments.len(), all.last().unwrap().segments.len());
    }
    all
}

#[tokio::test]
async fn a_hook_changes_what_it_sees_at_each_moment_and_the_log_says_so_first() {
    let (asked, paid) = (Asked::default(), Arc::default());
    let network = paying(&asked, &paid);
    let steersman = setup().in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Pay anna from 4111.").await.unwrap();
    assert_eq!(answer(&turn), "Paid. (checked)!");
    assert_eq!(*paid.lock().unwrap(), ["anna 50"], "eve was taken out");

    let log = log(&steersman, session.id()).await;
    let all = hooked(&log.lines);
    let moments: Vec<Moment> = all.iter().map(|(_, hooked)| hooked.at).collect();
    assert_eq!(
        moments,
        [
            Moment::BeforeModel,
            Moment::AfterModel,
            Moment::BeforeCall,
            Moment::AfterCall,
            Moment::BeforeModel,
            Moment::AfterModel,
            Moment::Finish,
        ]
    );
    let change =
        |k: usize| -> Json { serde_json::from_str(&log.texts.text(all[k].1.change)).unwrap() };
    assert_eq!(
        change(2),
        json!({ "was": { "to": "anna", "cents": 500 }, "is": { "to": "anna", "cents": 50 } })
    );
    assert_eq!(
        change(3),
        json!({ "was": "anna got 50", "is": "anna got 50 [seen]" })
    );
    assert_eq!(
        change(6),
        json!({ "was": "Paid. (checked)", "is": "Paid. (checked)!" })
    );
    assert_eq!(change(0)["added"], json!(["Be brief."]));

    // The request that left is the one that the log has, and the unedited one is shown with it.
    let contexts = contexts(&steersman, session.id()).await;
    assert_eq!(contexts.len(), 2);
    for (context, (n, of)) in contexts.iter().zip([&all[0], &all[4]]) {
        assert_eq!((context.wished.0, Some(context.effect)), (*n, of.effect));
        assert_eq!(context.as_sent, Some(true));
        let asked = Content::User("Pay anna from [card].".to_owned());
        let asked = context.segments.iter().find(|s| s.content == asked);
        let beside = asked.unwrap().hooked.as_ref().unwrap();
        assert_eq!(beside.by, ["marks".into()]);
        assert_eq!(
            beside.unedited,
            Some(Content::User("Pay anna from 4111.".to_owned()))
        );
        let last = context.segments.last().unwrap();
        assert_eq!(last.content, Content::User("Be brief.".to_owned()));
        assert_eq!(last.hooked.as_ref().unwrap().unedited, None);
    }
    let results = contexts[1].segments.iter();
    let results: Vec<&Content> = results
        .map(|s| &s.content)
        .filter(|c| matches!(c, Content::Result { .. }))
        .collect();
    assert!(
        matches!(results[..], [Content::Result { text, .. }] if text == "anna got 50 [seen]"),
        "{results:?}"
    );
}

/// Returns what the recorded changes of a log answered: as [`marks`] notes it.
fn answered(log: &Log) -> BTreeSet<(Moment, String)> {
    let all = hooked(&log.lines).into_iter();
    all.map(|(_, hooked)| {
        let change: Json = serde_json::from_str(&log.texts.text(hooked.change)).unwrap();
        let was = &change["was"];
        let what = match hooked.at {
            Moment::BeforeModel => hooked.effect.unwrap().to_string(),
            Moment::AfterModel => format!("{:?}", was["text"].as_str().map(str::to_owned)),
            Moment::BeforeCall => was.to_string(),
            Moment::AfterCall | Moment::Finish => was.as_str().unwrap().to_owned(),
        };
        (hooked.at, what)
    })
    .collect()
}

/// Plays it in a process that dies behind this line, and in another one to its end. Returns false if the first one came to the end.
async fn dies_behind(line: u64, undisturbed: &BTreeSet<(Moment, String)>) -> bool {
    let (asked, paid) = (Asked::default(), Arc::default());
    let store = Arc::new(Mortal {
        inner: MemoryStore::new(),
        last: AtomicU64::new(line),
    });
    let process = || {
        let steersman = setup().over_shared(store.clone(), &[1; 32]);
        let network = paying(&asked, &paid);
        steersman.register(&network);
        (steersman, network)
    };
    let (steersman, network) = process();
    let session = steersman.start(&network).await.unwrap();
    let id = session.id().to_owned();
    let told = session.say("Pay anna from 4111.").await;
    let died = session.settled().await.is_err();
    steersman.engine().kill().await;
    store.last.store(u64::MAX, Ordering::SeqCst);

    let (steersman, _) = process();
    let known = answered(&log(&steersman, &id).await);
    asked.lock().unwrap().clear();
    let session = steersman.session(&id).await.unwrap();
    if told.is_err() {
        session.say("Pay anna from 4111.").await.unwrap();
    }
    let turn = session.settled().await.unwrap();
    assert_eq!(answer(&turn), "Paid. (checked)!", "behind {line}");
    for asked in asked.lock().unwrap().iter() {
        assert!(!known.contains(asked), "behind {line}: {asked:?} again");
    }
    let log = log(&steersman, &id).await;
    assert_eq!(answered(&log).len(), undisturbed.len(), "behind {line}");
    for context in contexts(&steersman, &id).await {
        assert_ne!(context.as_sent, Some(false), "behind {line}");
    }
    died
}

#[tokio::test]
async fn killed_behind_any_line_no_hook_is_asked_again_whose_change_is_recorded() {
    let (asked, paid) = (Asked::default(), Arc::default());
    let network = paying(&asked, &paid);
    let steersman = setup().in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Pay anna from 4111.").await.unwrap();
    assert_eq!(answer(&turn), "Paid. (checked)!");
    let undisturbed = answered(&log(&steersman, session.id()).await);
    assert_eq!(undisturbed.len(), 7);
    let mut line = 1;
    while dies_behind(line, &undisturbed).await {
        line += 1;
    }
    assert!(line > 4, "{line} lines");
}

#[tokio::test]
async fn a_replay_asks_no_hook_and_gives_the_same() {
    let (asked, paid) = (Asked::default(), Arc::default());
    let network = paying(&asked, &paid);
    let store = Arc::new(MemoryStore::new());
    let steersman = setup().over_shared(store.clone(), &[1; 32]);
    let session = steersman.start(&network).await.unwrap();
    let id = session.id().to_owned();
    let turn = session.ask("Pay anna from 4111.").await.unwrap();
    assert_eq!(answer(&turn), "Paid. (checked)!");
    drop(session);
    drop(steersman);
    asked.lock().unwrap().clear();

    // Another process reads it, and makes it again from its recording: under the same definition, and under one that does the same.
    let steersman = setup().over_shared(store, &[1; 32]);
    steersman.register(&network);
    let first = log(&steersman, &id).await;
    contexts(&steersman, &id).await;
    let other = DEFINITION.replace("name: desk", "name: desk\nlimits: { model_calls: 99 }");
    let other = Network::from_yaml(other)
        .tool(tool("pay", 1, |_: Pay| async { Ok::<_, String>("?") }).idempotent())
        .hook(marks(&asked))
        .build()
        .unwrap();
    for definition in [None, Some(other)] {
        let wanted = Rerun {
            definition,
            ..Rerun::default()
        };
        let rerun = steersman.rerun(&id, wanted).await.unwrap();
        assert!(rerun.diverged.is_none(), "{rerun:?}");
        let again = log(&steersman, &rerun.session).await;
        let changes = |log: &Log| {
            let all = hooked(&log.lines).into_iter();
            let all = all.map(|(n, hooked)| {
                let text = log.texts.text(hooked.change).to_string();
                (n, hooked.at, hooked.effect, text)
            });
            all.collect::<Vec<_>>()
        };
        assert_eq!(changes(&again).len(), 7);
        assert_eq!(changes(&again), changes(&first));
    }
    assert_eq!(*asked.lock().unwrap(), [], "no hook was asked");
    assert_eq!(paid.lock().unwrap().len(), 1, "nothing was paid again");
}

/// A hook that panics once the message says so.
fn panics(at: Moment) -> Hook {
    let hook = hook("bad", 1);
    match at {
        Moment::BeforeModel => hook.before_model(|_, _| panic!("boom")),
        Moment::AfterModel => hook.after_model(|_, _| panic!("boom")),
        Moment::BeforeCall => hook.before_call(|_, _| panic!("boom")),
        Moment::AfterCall => hook.after_call(|_, _| panic!("boom")),
        Moment::Finish => hook.on_finish(|_, _| panic!("boom")),
    }
}

fn failing(hook: Hook) -> Network {
    let pay = tool("pay", 1, |pay: Pay| async move {
        Ok::<_, String>(format!("{} got {}", pay.to, pay.cents))
    });
    Network::builder("desk")
        .tool(pay.unsafe_())
        .hook(hook)
        .agent(agent("desk").system("You pay.").tools(["pay"]))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_panic_fails_the_call_with_code_place_and_way_out() {
    let script = "desk: [ { call: { pay: { to: anna, cents: 5 } } }, Paid. ]";
    let cases = [
        (Moment::BeforeModel, "before a model call"),
        (Moment::AfterModel, "after a model call"),
        (Moment::BeforeCall, "before a call of `pay`"),
        (Moment::AfterCall, "after a call of `pay`"),
        (Moment::Finish, "on the answer"),
    ];
    for (moment, place) in cases {
        let steersman = Steersman::options().script_all(script).in_memory();
        let network = failing(panics(moment));
        let session = steersman.start(&network).await.unwrap();
        let turn = session.ask("Pay anna.").await.unwrap();
        let why = format!(
            "the hook `bad` of `desk` failed {place}: it panicked: boom. Mend it in the program that registers it, or take it \
             out of `hooks` in the definition."
        );
        match (moment, &turn) {
            // The model hears of a failed call, and goes on.
            (Moment::BeforeCall | Moment::AfterCall, Turn::Answer(answer)) => {
                assert_eq!(answer.text(), "Paid.");
                let contexts = contexts(&steersman, session.id()).await;
                let told = contexts[1].segments.iter().any(|segment| {
                    matches!(&segment.content, Content::Result { text, error: true, .. }
                        if text.contains(&why) && !text.contains("got 5"))
                });
                assert!(told, "{moment:?}: {:?}", contexts[1].segments);
            }
            (Moment::BeforeCall | Moment::AfterCall, other) => panic!("{other:?}"),
            (_, Turn::Stopped(stop)) => {
                assert_eq!(&*stop.code, "hook", "{moment:?}");
                assert!(stop.message.contains(&why), "{moment:?}: {}", stop.message);
            }
            (_, other) => panic!("{moment:?}: {other:?}"),
        }
        let told = hooked(&log(&steersman, session.id()).await.lines);
        assert!(told.iter().any(|(_, hooked)| hooked.at == moment));
    }
}

#[tokio::test]
async fn a_hook_has_a_time_limit() {
    let (holds, waits) = mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    let slow = hook("slow", 1).timeout("20ms").on_finish(move |_, _| {
        let _ = waits.lock().unwrap().recv();
        Ok(())
    });
    let steersman = Steersman::options()
        .script_all("desk: [ Hello. ]")
        .in_memory();
    let session = steersman.start(&failing(slow)).await.unwrap();
    let turn = session.ask("Hello?").await.unwrap();
    let Turn::Stopped(stop) = turn else {
        panic!("{turn:?}");
    };
    assert_eq!(&*stop.code, "hook");
    assert!(
        stop.message.contains("it took longer than 20 ms"),
        "{}",
        stop.message
    );
    drop(holds);
}

#[tokio::test]
async fn a_hook_never_sees_an_opened_secret() {
    const SECRET: &str = "hunter2";
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = {
        let seen = seen.clone();
        move |what: String| {
            seen.lock().unwrap().push(what);
            Ok(())
        }
    };
    let [sent, said, given, got, last] = [(); 5].map(|()| note.clone());
    let spy = hook("spy", 1)
        .before_model(move |_, request| sent(format!("{request:?}")))
        .after_model(move |_, answer| said(format!("{answer:?}")))
        .before_call(move |_, args| given(format!("{args:?}")))
        .after_call(move |at, result| got(format!("{at:?} {result}")))
        .on_finish(move |_, answer| last(answer.clone()));
    let definition = r#"
state: { token: { type: secret, optional: true } }
tools:
  login:
    native: 1
    description: Logs in.
    parameters: {}
    effect: read
    set: { token: "{{ result.token }}" }
agents: { desk: { description: Pays., system: You pay., tools: [login] } }
hooks: { spy: { native: 1 } }
"#;
    let login = tool("login", 1, |_: Nothing| async {
        Ok::<_, String>(json!({ "token": SECRET, "name": "anna" }))
    });
    let network = Network::from_yaml(definition)
        .tool(login.read())
        .hook(spy)
        .build()
        .unwrap();
    let steersman = Steersman::options()
        .script_all("desk: [ { call: { login: {} } }, Done. ]")
        .in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Log in.").await.unwrap();
    assert_eq!(answer(&turn), "Done.");
    let seen = seen.lock().unwrap().clone();
    assert!(seen.iter().any(|seen| seen.contains("anna")), "{seen:?}");
    assert!(!seen.iter().any(|seen| seen.contains(SECRET)), "{seen:?}");
    let changed = hooked(&log(&steersman, session.id()).await.lines);
    assert_eq!(changed, [], "a hook that changes nothing leaves no trace");
}

#[tokio::test]
async fn hooks_are_asked_in_the_order_of_the_definition_around_the_agents_that_it_names() {
    let says = |name: &'static str| {
        hook(name, 1).on_finish(move |_, answer| {
            answer.push_str(name);
            Ok(())
        })
    };
    let network = Network::from_yaml(
        "
agents: { desk: { system: You answer. }, other: { system: You answer. } }
entry: desk
hooks: { z: { native: 1 }, no: { native: 1, agents: other }, a: { native: 1, agents: [desk] } }
",
    )
    .hook(says("a"))
    .hook(says("no"))
    .hook(says("z"))
    .build()
    .unwrap();
    let store = Arc::new(MemoryStore::new());
    let setup = || Steersman::options().script_all("desk: [ Hello, Hello again ]");
    let steersman = setup().over_shared(store.clone(), &[1; 32]);
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Hello?").await.unwrap();
    assert_eq!(answer(&turn), "Helloza");

    // So it is in another process, which reads the definition from the store.
    let id = session.id().to_owned();
    drop(session);
    steersman.engine().kill().await;
    let steersman = setup().over_shared(store, &[1; 32]);
    steersman.register(&network);
    let session = steersman.session(&id).await.unwrap();
    let turn = session.ask("Hello?").await.unwrap();
    assert_eq!(answer(&turn), "Hello againza");
}

#[tokio::test]
async fn a_program_that_lacks_a_hook_of_the_definition_is_told() {
    let definition = |hooks: &str| {
        Network::from_yaml(format!(
            "agents: {{ desk: {{ system: You answer. }} }}\nhooks: {{ {hooks} }}"
        ))
    };
    let quiet = |version: u32| hook("redact", version).on_finish(|_, _| Ok(()));
    let said = |built: Result<Network, steersman::DefinitionError>| built.unwrap_err().to_string();
    let missing = said(definition("redact: { native: 1 }").build());
    assert!(
        missing.contains(
            "the hook `redact` is declared and not registered: register it with `Builder::hook`"
        ),
        "{missing}"
    );
    let other = said(definition("redact: { native: 1 }").hook(quiet(2)).build());
    assert!(
        other.contains("the hook `redact` is declared as `native: 1` and registered as version 2"),
        "{other}"
    );
    let more = said(definition("").hook(quiet(2)).build());
    assert!(
        more.contains("add `redact: { native: 2 }` under `hooks:`"),
        "{more}"
    );
    let twice = definition("redact: { native: 1 }")
        .hook(quiet(1))
        .hook(quiet(1));
    assert!(said(twice.build()).contains("the hook `redact` is registered twice"));
    let nobody = definition("redact: { native: 1, agents: [nobody] }").hook(quiet(1));
    assert!(said(nobody.build()).contains("nobody"));

    // A session of a program that has it, opened by one that does not.
    let network = definition("redact: { native: 1 }")
        .hook(quiet(1))
        .build()
        .unwrap();
    let store = Arc::new(MemoryStore::new());
    let setup = || Steersman::options().script_all("desk: [ Hello ]");
    let steersman = setup().over_shared(store.clone(), &[1; 32]);
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Hello?").await.unwrap();
    assert_eq!(answer(&turn), "Hello");
    let id = session.id().to_owned();
    drop(session);
    steersman.engine().kill().await;
    let steersman = setup().over_shared(store, &[1; 32]);
    let why = match steersman.session(&id).await {
        Err(why) => why.to_string(),
        Ok(session) => session.say("Hello?").await.unwrap_err().to_string(),
    };
    assert!(
        why.contains("version 1 of the hook `redact`, of which this program has none"),
        "{why}"
    );
}
